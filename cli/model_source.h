// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `--model` names: a short name with sizes, a kind of the registry, or JSON
// (text or file) with a model or a recorded run; and an example of its inputs.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "braintrace/model/module.h"
#include "braintrace/nn/sized_model.h"

namespace braintrace::cli {

struct ModelRequest {
  std::string model;  // short name, kind or file
  nn::ModelSizes sizes = {.n_in = 10, .n_rec = 32, .n_out = 10};
  std::set<std::string> given;      // sizes by key, "n_rec": kinds must take these
  std::vector<std::string> inputs;  // "10", "1,28,28"; empty: what the model says
  std::optional<std::int64_t> batch = {};
};

struct LoadedModel {
  std::string title;
  std::unique_ptr<Module> module;  // states initialised
  std::vector<Array> inputs;       // zeros, with the batch axis in front
  bool batched = false;
};

// --model, its sizes, --input and --batch.
void add_model_options(CLI::App& app, ModelRequest& request);

// To say after a refusal of a kind of the registry.
std::string kind_hint(const std::string& kind);

bool is_model_file(const std::string& model);        // or the JSON text itself
std::string model_title(const std::string& model);   // as given; of JSON text its kind
void require_model(const std::string& model);        // UserError lists what there is
nlohmann::json model_file(const std::string& file);  // UserError unless a JSON object

// UserError when there is no such kind or file, or the shape of an input is not known.
LoadedModel load_model(const ModelRequest& request);

}  // namespace braintrace::cli
