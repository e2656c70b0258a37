// SPDX-License-Identifier: Apache-2.0
// Reads the table of algorithms: five small models, many rules each.
#include <fmt/core.h>

#include "braintrace/testing/parity_table_impl.h"

namespace braintrace::testing {

using nlohmann::json;
using namespace internal;

namespace {

// Nested lists of numbers.
void flatten(const json& j, std::size_t depth, Shape& shape,
             std::vector<double>& values) {
  if (!j.is_array()) {
    BT_REQUIRE(j.is_number(), "an array must be nested lists of numbers");
    values.push_back(j.get<double>());
    return;
  }
  const auto n = static_cast<std::int64_t>(j.size());
  if (shape.size() <= depth) shape.push_back(n);
  BT_REQUIRE(shape[depth] == n, "the lists of an array must have equal lengths");
  for (const json& part : j) flatten(part, depth + 1, shape, values);
}

}  // namespace

Array internal::nested(const json& j, DType dtype) {
  Shape shape;
  std::vector<double> values;
  flatten(j, 0, shape, values);
  return array(shape, values, dtype);
}

// {"Wh/weight": {"bias": ..}, "w": ..} as leaves by path.
StateDict internal::named_leaves(const json& j, DType dtype) {
  StateDict out;
  for (const auto& [name, value] : j.items()) {
    if (!value.is_object()) {
      out[name] = nested(value, dtype);
      continue;
    }
    for (const auto& [leaf, v] : value.items()) out[name + "/" + leaf] = nested(v, dtype);
  }
  return out;
}

namespace {

json ring_mask(const json& m, std::int64_t n) {
  std::vector<double> mask(static_cast<std::size_t>(n * n), 0);
  const auto pointers = m.at("indptr").get<Ints>(), columns = m.at("indices").get<Ints>();
  BT_REQUIRE(static_cast<std::int64_t>(pointers.size()) == n + 1,
             "indptr must have one entry more than rows");
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t k = pointers.at(row); k < pointers.at(row + 1); ++k)
      mask.at(static_cast<std::size_t>(row * n + columns.at(k))) = 1;
  return {{"shape", {n, n}}, {"data", mask}};
}

// Cells with a weight that reads the input and the state, (in + rec, rec).
constexpr std::pair<const char*, const char*> cells[] = {
    {"CFNCell", "Wf/weight/weight"},    {"GRUCell", "Wh/weight/weight"},
    {"LSTMCell", "Wi/weight/weight"},   {"MGUCell", "Wf/weight/weight"},
    {"MiniGRU", "W_z/weight/weight"},   {"MiniLSTM", "W_f/weight/weight"},
    {"URLSTMCell", "Wf/weight/weight"},
};

}  // namespace

TableModel internal::table_model(const std::string& name, const json& m, DType dtype) {
  StateDict w = named_leaves(m.at("params"), dtype);
  const auto dim = [&](const char* path, std::size_t axis) {
    const auto it = w.find(path);
    BT_REQUIRE(it != w.end(), fmt::format("params: '{}' is missing", path));
    return it->second.shape().at(axis);
  };
  if (name == "leaky_rnn") {
    const std::int64_t n_rec = dim("b", 0);
    const json spec = {{"kind", "leaky_rnn"},
                       {"n_in", dim("w", 0) - n_rec},
                       {"n_rec", n_rec},
                       {"n_out", dim("o", 1)}};
    return {spec, {{"p/w", w.at("w")}, {"p/b", w.at("b")}, {"o", w.at("o")}}};
  }
  if (name == "two_state")
    return {{{"kind", "two_state_chain"}, {"n_in", dim("w", 0)}, {"n_rec", dim("w", 1)}},
            w};
  if (name == "sparse_ring") {
    const std::int64_t n = dim("win", 1);
    return {{{"kind", "leaky_sparse_ring"},
             {"n_in", dim("win", 0)},
             {"n_rec", n},
             {"constants", {{"csr_dense_mask", ring_mask(m, n)}}}},
            w};
  }
  for (const auto& [cell, gate] : cells) {
    if (name != cell) continue;
    const std::int64_t n_rec = dim(gate, 1);
    return {{{"kind", "layer"},
             {"class", name},
             {"args", {{"in_size", dim(gate, 0) - n_rec}, {"out_size", n_rec}}}},
            w};
  }
  std::string known;
  for (const auto& [cell, unused] : cells) known += std::string(", ") + cell;
  throw UserError("unknown model '" + name +
                  "'; known: leaky_rnn, two_state, sparse_ring" + known);
}

namespace {

std::vector<ParityResult> check_model(const std::string& name, const std::string& model,
                                      const json& m, DType dtype) {
  std::vector<ParityResult> out;
  for (const auto& [rule, entry] : m.at("cases").items()) {
    ParityResult r{.name = name + "/" + rule};
    try {
      compare_entry(table_model(model, m, dtype), m, rule, entry, dtype, r);
    } catch (const std::exception& e) {
      r.failure = e.what();
    }
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace

std::vector<ParityResult> check_algorithm_table(const std::string& name,
                                                const std::string& text,
                                                const ParityOptions& options) {
  const json j = json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("models") || !j["models"].is_object())
    return {{.name = name, .failure = "not a table of algorithms"}};
  std::vector<ParityResult> out;
  for (const auto& [model, m] : j["models"].items()) {
    if (!m.is_object() || !m.contains("cases")) {
      out.push_back({.name = name + "/" + model, .failure = "has no cases"});
      continue;
    }
    for (ParityResult& r : check_model(name + "/" + model, model, m, options.dtype))
      out.push_back(std::move(r));
  }
  return out;
}

}  // namespace braintrace::testing
