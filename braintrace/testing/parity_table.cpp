// SPDX-License-Identifier: Apache-2.0
// Replays the table of algorithms: five small models, many rules each.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/parity.h"

namespace braintrace::testing {
namespace {

using nlohmann::json;

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

Array nested(const json& j, DType dtype) {
  Shape shape;
  std::vector<double> values;
  flatten(j, 0, shape, values);
  return array(shape, values, dtype);
}

// {"Wh/weight": {"bias": ..}, "w": ..} as leaves by path.
StateDict leaves(const json& j, DType dtype) {
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

struct TableModel {
  json spec;          // for build_model
  StateDict weights;  // by path of that model
};

json ring_mask(const json& m, std::int64_t n) {
  std::vector<double> mask(static_cast<std::size_t>(n * n), 0);
  const auto pointers = m.at("indptr").get<Ints>(), columns = m.at("indices").get<Ints>();
  BT_REQUIRE(static_cast<std::int64_t>(pointers.size()) == n + 1,
             "indptr must have one entry more than rows");
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t k = pointers[row]; k < pointers[row + 1]; ++k)
      mask.at(static_cast<std::size_t>(row * n + columns.at(k))) = 1;
  return {{"shape", {n, n}}, {"data", mask}};
}

TableModel table_model(const std::string& name, const json& m, DType dtype) {
  StateDict w = leaves(m.at("params"), dtype);
  const auto dim = [&](const char* path, std::size_t axis) {
    return w.at(path).shape().at(axis);
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
  if (name == "GRUCell" || name == "LSTMCell") {
    const char* gate = name == "GRUCell" ? "Wh/weight/weight" : "Wi/weight/weight";
    const std::int64_t n_rec = dim(gate, 1);
    return {{{"kind", "layer"},
             {"class", name},
             {"args", {{"in_size", dim(gate, 0) - n_rec}, {"out_size", n_rec}}}},
            w};
  }
  throw UserError("unknown model '" + name +
                  "'; known: leaky_rnn, two_state, GRUCell, LSTMCell, sparse_ring");
}

struct TableRun {
  std::vector<double> losses;
  StateDict grads;  // by back-propagation through time
};

TableRun run_model(const std::string& name, const json& m, DType dtype) {
  const TableModel model = table_model(name, m, dtype);
  const std::unique_ptr<Module> module = nn::build_model(model.spec.dump());
  const Array xs = nested(m.at("xs"), dtype), ys = nested(m.at("ys"), dtype);
  const auto batch = xs.rank() == 3 ? std::optional(xs.shape()[1]) : std::nullopt;
  init_all_states(*module, {.batch_size = batch, .dtype = dtype});
  load_state_dict(*module, model.weights);
  const auto targets = steps_of(ys);
  const auto loss = [&](std::size_t t, const Values& y) {
    return sum(square(y[0] - Value(targets[t][0])));
  };
  const BpttResult r = bptt(*module, steps_of(xs), loss);
  TableRun run{.grads = r.grads};
  for (std::size_t t = 0; t < r.outputs.size(); ++t)
    run.losses.push_back(loss(t, {r.outputs[t][0]}).array().item());
  return run;
}

// With one window over the whole sequence every rule is back-propagation through time.
bool is_bptt(const std::string& name, std::size_t steps) {
  return name == "bptt" || name.ends_with(fmt::format("_win{}", steps));
}

ParityResult check_entry(const std::string& name, const json& entry, const TableRun& run,
                         const std::string& rule, DType dtype) {
  ParityResult r{.name = name};
  const Tolerance tolerance = dtype == DType::f32 ? Tolerance{2e-4, 2e-5} : Tolerance{};
  if (entry.contains("losses"))
    r.fields.push_back(
        compare("losses",
                array({static_cast<std::int64_t>(run.losses.size())}, run.losses, dtype),
                nested(entry["losses"], dtype), tolerance));
  if (!is_bptt(rule, run.losses.size())) return r;
  for (const auto& [path, want] : leaves(entry.at("grads"), dtype))
    r.fields.push_back(compare("grads " + path, run.grads.at(path), want, tolerance));
  return r;
}

std::vector<ParityResult> check_model(const std::string& name, const std::string& model,
                                      const json& m, DType dtype) {
  std::vector<ParityResult> out;
  TableRun run;
  try {
    run = run_model(model, m, dtype);
  } catch (const std::exception& e) {
    return {{.name = name, .failure = e.what()}};
  }
  for (const auto& [rule, entry] : m.at("cases").items()) {
    ParityResult r{.name = name + "/" + rule};
    try {
      r = check_entry(r.name, entry, run, rule, dtype);
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
  for (const auto& [model, m] : j["models"].items())
    for (ParityResult& r : check_model(name + "/" + model, model, m, options.dtype))
      out.push_back(std::move(r));
  return out;
}

}  // namespace braintrace::testing
