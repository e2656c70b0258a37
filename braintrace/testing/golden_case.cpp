// SPDX-License-Identifier: Apache-2.0
// Reads recorded runs.
#include "braintrace/testing/golden_case.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "braintrace/array/array_json.h"

namespace braintrace::testing {
namespace {

using nlohmann::json;

const json& field(const std::string& where, const json& j, const char* name) {
  const auto it = j.find(name);
  BT_REQUIRE(it != j.end(), fmt::format("{}: the field '{}' is missing", where, name));
  return *it;
}

std::string text_field(const std::string& where, const json& j, const char* name) {
  const json& v = field(where, j, name);
  BT_REQUIRE(v.is_string(), fmt::format("{}: '{}' must be a text", where, name));
  return v.get<std::string>();
}

std::optional<std::int64_t> count_field(const std::string& where, const json& j,
                                        const char* name) {
  const auto it = j.find(name);
  if (it == j.end() || it->is_null()) return {};
  BT_REQUIRE(it->is_number_integer() && it->get<std::int64_t>() > 0,
             fmt::format("{}: '{}' must be a positive whole number", where, name));
  return it->get<std::int64_t>();
}

std::optional<double> number_field(const std::string& where, const json& j,
                                   const char* name) {
  const auto it = j.find(name);
  if (it == j.end() || it->is_null()) return {};
  BT_REQUIRE(it->is_number(), fmt::format("{}: '{}' must be a number", where, name));
  return it->get<double>();
}

StateDict arrays(const std::string& where, const json& j, const char* name) {
  StateDict out;
  const auto it = j.find(name);
  if (it == j.end() || it->is_null()) return out;
  BT_REQUIRE(it->is_object(), fmt::format("{}: '{}' must be an object", where, name));
  for (const auto& [path, value] : it->items())
    out.emplace(path,
                array_from_json(fmt::format("{}: {} of '{}'", where, name, path), value));
  return out;
}

Array one_array(const std::string& where, const json& j, const char* name) {
  const json& v = field(where, j, name);
  // A list of numbers stands for a vector.
  if (v.is_array())
    return array_from_json(where + ": " + name, {{"shape", {v.size()}}, {"data", v}});
  return array_from_json(where + ": " + name, v);
}

GoldenMode mode_of(const std::string& where, const std::string& text) {
  if (text == "none") return GoldenMode::none;
  if (text == "batch") return GoldenMode::batch;
  if (text == "vmap") return GoldenMode::vmap;
  throw UserError(
      fmt::format("{}: 'mode' must be none, batch or vmap, got '{}'", where, text));
}

std::vector<double> mask_of(const std::string& where, const json& j, std::int64_t steps) {
  const auto it = j.find("mask");
  if (it == j.end() || it->is_null())
    return std::vector<double>(static_cast<std::size_t>(steps), 1);
  const Array mask = one_array(where, j, "mask");
  BT_REQUIRE(mask.size() == steps, fmt::format("{}: 'mask' must have {} entries, got {}",
                                               where, steps, mask.size()));
  return mask.to_doubles();
}

GoldenExpected expected_of(const std::string& where, const json& j) {
  BT_REQUIRE(j.is_object(), where + ": 'expected' must be an object");
  const json checks = j.value("checks", json::object());
  return {.outputs = one_array(where, j, "outputs"),
          .losses = one_array(where, j, "losses"),
          .final_hidden = arrays(where, j, "final_hidden"),
          .hidden_per_step = arrays(where, j, "hidden_per_step"),
          .grad_sum = arrays(where, j, "grad_sum"),
          .bptt_grad_sum = arrays(where, j, "bptt_grad_sum"),
          .objective = number_field(where, checks, "bptt_objective"),
          .spike_rate = number_field(where, checks, "spike_rate")};
}

void check_shapes(const GoldenCase& c) {
  const auto leads = [&](const Array& a) {
    return a.rank() >= 1 && a.shape()[0] == c.steps;
  };
  BT_REQUIRE(leads(c.inputs) && leads(c.targets),
             fmt::format("{}: inputs and targets must have {} steps", c.name, c.steps));
  BT_REQUIRE((c.mode == GoldenMode::none) != c.batch.has_value(),
             c.name + ": 'batch' must be given in batch and vmap mode, and only there");
  const bool has_lanes = c.mode == GoldenMode::none ||
                         (c.inputs.rank() >= 2 && c.inputs.shape()[1] == *c.batch);
  BT_REQUIRE(has_lanes, fmt::format("{}: axis 1 of the inputs must be the batch, got {}",
                                    c.name, to_string(c.inputs.shape())));
  BT_REQUIRE(!c.chunk_size || c.steps % *c.chunk_size == 0,
             c.name + ": 'chunk_size' must divide the number of steps");
}

}  // namespace

GoldenCase parse_golden(const std::string& name, const std::string& text) {
  const json j = json::parse(text, nullptr, false);
  BT_REQUIRE(!j.is_discarded(), name + ": not JSON, or cut off");
  BT_REQUIRE(j.is_object(), name + ": not a JSON object");
  GoldenCase c;
  c.name = name;
  c.text = text;
  c.kind = text_field(name, field(name, j, "model"), "kind");
  c.algorithm = text_field(name, field(name, j, "algorithm"), "class");
  c.mode = mode_of(name, text_field(name, j, "mode"));
  c.batch = count_field(name, j, "batch");
  const auto steps = count_field(name, j, "T");
  BT_REQUIRE(steps, name + ": the field 'T' is missing");
  c.steps = *steps;
  c.chunk_size = count_field(name, j, "chunk_size");
  c.mask = mask_of(name, j, c.steps);
  const json& loss = field(name, j, "loss");
  c.loss = text_field(name, loss, "kind");
  if (loss.contains("time_reduction"))
    BT_REQUIRE(text_field(name, loss, "time_reduction") == "sum",
               name + ": 'time_reduction' must be sum");
  c.weights = arrays(name, j, "weights");
  c.initial_states = arrays(name, j, "initial_states");
  c.inputs = one_array(name, j, "inputs");
  c.targets = one_array(name, j, "targets");
  c.expected = expected_of(name, field(name, j, "expected"));
  check_shapes(c);
  return c;
}

GoldenKind classify_golden(const std::string& text) {
  const json j = json::parse(text, nullptr, false);
  if (j.is_discarded()) return GoldenKind::malformed;
  if (!j.is_object()) return GoldenKind::other;
  if (j.contains("expected")) return GoldenKind::golden_case;
  if (j.contains("models")) return GoldenKind::algorithm_table;
  return GoldenKind::other;
}

}  // namespace braintrace::testing
