// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models by name: the one table behind model files, programs and bindings.
#include <memory>
#include <string>
#include <vector>

#include "braintrace/model/module.h"

namespace braintrace::nn {

// `text` is one of
//   a kind alone                   two_layer_gru
//   a JSON object                  {"kind": "two_layer_gru", "n_rec": 16}
//   a JSON object that holds it    {"model": {...}, "weights": {...}, "dt_ms": 1}
// In the last form the names of the weights settle what the kind leaves open (a bias).
// `constants` of the model object ({"shape": [..], "data": [..]}) are masks, signs, taus.
// UserError on malformed text, an unknown kind (lists the known ones), an unknown or bad
// option (lists the known ones of the kind).
std::unique_ptr<Module> build_model(const std::string& text);

std::vector<std::string> model_kinds();  // sorted

}  // namespace braintrace::nn
