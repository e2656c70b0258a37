// SPDX-License-Identifier: Apache-2.0
// Finds the kind of a model text and builds it.
#include "braintrace/nn/model_registry.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "braintrace/nn/model_spec_impl.h"

namespace braintrace::nn {
namespace {

using internal::ModelKind;
using internal::ModelSpec;
using nlohmann::json;

std::vector<ModelKind> all_kinds() {
  std::vector<ModelKind> out = internal::op_level_kinds();
  for (const auto& more : {internal::special_op_kinds(), internal::layered_kinds(),
                           internal::control_flow_kinds(), internal::spiking_kinds()})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

json parse(const std::string& text) {
  const auto start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && text[start] != '{') {
    const auto end = text.find_last_not_of(" \t\r\n");
    return {{"kind", text.substr(start, end - start + 1)}};
  }
  json j = json::parse(text, nullptr, false);
  BT_REQUIRE(j.is_object(), "build_model: the text is neither a kind nor a JSON object");
  return j;
}

ModelSpec read_spec(const json& j) {
  const bool is_case = j.contains("model");
  const json& model = is_case ? j["model"] : j;
  BT_REQUIRE(model.is_object(), "build_model: 'model' must be a JSON object");
  const bool has_kind = model.contains("kind") && model["kind"].is_string();
  BT_REQUIRE(has_kind, "build_model: the model object needs a text 'kind'");
  ModelSpec spec("model '" + model["kind"].get<std::string>() + "'", model);
  if (!is_case) return spec;
  if (j.contains("dt_ms")) {
    ModelSpec outer("build_model", {{"dt_ms", j["dt_ms"]}});
    spec.dt = outer.dt;
  }
  if (j.contains("weights") && j["weights"].is_object()) {
    spec.weights.emplace();
    for (const auto& [path, unused] : j["weights"].items()) spec.weights->insert(path);
  }
  return spec;
}

}  // namespace

std::unique_ptr<Module> build_model(const std::string& text) {
  const json j = parse(text);
  ModelSpec spec = read_spec(j);
  const std::string kind = spec.text("kind", "");
  for (const ModelKind& k : all_kinds()) {
    if (k.name != kind) continue;
    std::unique_ptr<Module> model = k.make(spec);
    spec.finish();
    return model;
  }
  throw UserError(fmt::format("build_model: unknown kind '{}'; known: {}", kind,
                              fmt::join(model_kinds(), ", ")));
}

std::vector<std::string> model_kinds() {
  std::vector<std::string> names;
  for (const ModelKind& k : all_kinds()) names.emplace_back(k.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace braintrace::nn
