// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `--model` names: a kind of the registry, or a JSON file with a model or a recorded
// run; and an example of its inputs.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braintrace/model/module.h"

namespace braintrace::cli {

struct ModelRequest {
  std::string model;                // kind or file
  std::vector<std::string> inputs;  // "10", "1,28,28"; empty: what the model says
  std::optional<std::int64_t> batch = {};
};

struct LoadedModel {
  std::string title;
  std::unique_ptr<Module> module;  // states initialised
  std::vector<Array> inputs;       // zeros, with the batch axis in front
  bool batched = false;
};

// UserError when there is no such kind or file, or the shape of an input is not known.
LoadedModel load_model(const ModelRequest& request);

}  // namespace braintrace::cli
