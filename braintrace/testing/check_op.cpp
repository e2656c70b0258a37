// SPDX-License-Identifier: Apache-2.0
// The driver of the op harness and the checks that need values only (1-3).
#include "braintrace/testing/check_op.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op_impl.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::testing {
namespace internal {

std::string label(const Checked& k, const std::string& what) {
  return k.c.op + ": " + what;
}

void fail(const Checked& k, const std::string& what) {
  throw CheckFailure(label(k, what) + "\n" + print(k.graph));
}

void note(Checked& k, const std::string& what, double worst_error) {
  k.notes += fmt::format("  {} {:.1e}", what, worst_error);
}

Graph trace(const std::function<Values(const Values&)>& build,
            const std::vector<Type>& types) {
  const auto builder = Builder::create();
  Values in;
  for (const Type& t : types) in.push_back(builder->input(t));
  return builder->finish(build(in));
}

std::vector<bool> active_inputs(const OpCase& c) {
  std::vector<bool> active = c.active;
  if (active.empty())
    for (const Array& a : c.inputs) active.push_back(is_float(a.dtype()));
  return active;
}

std::vector<Use> uses(const Checked& k) {
  std::vector<Use> found;
  std::vector<Array> env(k.graph.num_values());
  for (std::size_t i = 0; i < k.c.inputs.size(); ++i)
    env[k.graph.inputs()[i].index] = k.c.inputs[i];
  for (const Node& n : k.graph.nodes()) {
    std::vector<Array> in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    const std::vector<Array> out = eval_op(*n.op, in, n.attrs);
    for (std::size_t i = 0; i < out.size(); ++i) env[n.outputs[i].index] = out[i];
    if (n.op == k.op) found.push_back({&n, in, out});
  }
  return found;
}

bool holds(const Graph& g, const OpDef* op) {
  for (const Node& n : g.nodes()) {
    if (n.op == op) return true;
    for (const auto& [key, value] : n.attrs.entries()) {
      const auto* sub = std::get_if<GraphPtr>(&value);
      if (sub && holds(**sub, op)) return true;
    }
  }
  return false;
}

std::vector<Type> types_of(const std::vector<Array>& arrays) {
  std::vector<Type> types;
  for (const Array& a : arrays) types.push_back(type_of(a));
  return types;
}

std::vector<Array> run_eagerly(const OpCase& c, const std::vector<Array>& inputs) {
  std::vector<Array> out;
  for (const Value& v : c.build(Values(inputs.begin(), inputs.end())))
    out.push_back(v.array());
  return out;
}

std::vector<Array> converted(std::vector<Array> arrays, DType from, DType to) {
  for (Array& a : arrays)
    if (a.dtype() == from) a = a.astype(to);
  return arrays;
}

namespace {

double compare_values(const Checked& k, const std::string& what,
                      const std::vector<Array>& got, const std::vector<Array>& want) {
  if (got.size() != want.size())
    fail(k, fmt::format("{}: {} outputs instead of {}", what, got.size(), want.size()));
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::string place = label(k, fmt::format("{}, output {}", what, i));
    const double allowed = value_tolerance(got[i].dtype());
    worst = std::max(worst, check_close(place, got[i], want[i], allowed));
  }
  return worst;
}

}  // namespace

// Check 2. The f64 reference sees the inputs as f32 rounds them, so that only the op's
// own arithmetic differs.
void check_values(Checked& k) {
  compare_values(k, "eager against interpreted", run_eagerly(k.c, k.c.inputs), k.outputs);
  const bool floats = std::any_of(k.c.inputs.begin(), k.c.inputs.end(),
                                  [](const Array& a) { return a.dtype() == DType::f64; });
  if (!floats) return;
  const auto f32 = converted(k.c.inputs, DType::f64, DType::f32);
  const auto got = run_eagerly(k.c, f32);
  auto want = run_eagerly(k.c, converted(f32, DType::f32, DType::f64));
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i)
    want[i] = want[i].astype(got[i].dtype());
  note(k, "f32", compare_values(k, "f32 against f64", got, want));
}

}  // namespace internal

namespace {

using internal::Checked;

// Check 1.
void check_program(const Checked& k, OpTable ops) {
  if (!k.op) internal::fail(k, "the op is not in the table");
  if (!internal::holds(k.graph, k.op))
    internal::fail(k, "the traced program does not hold the op");
  verify(k.graph);
  const std::string text = print(k.graph);
  const Graph again = parse(text, ops);
  if (again != k.graph)
    internal::fail(k, "parse(print(g)) is not g but\n" + print(again));
}

// Check 3.
void check_points(Checked& k) {
  double worst = 0;
  for (std::size_t p = 0; p < k.c.expect.size(); ++p) {
    const HandPoint& point = k.c.expect[p];
    worst = std::max(worst, internal::compare_values(
                                k, fmt::format("hand-checked point {}", p),
                                internal::run_eagerly(k.c, point.inputs), point.outputs));
  }
  if (!k.c.expect.empty()) internal::note(k, "points", worst);
}

std::string log_line(const Checked& k) {
  std::string line = k.c.op + ":";
  for (const Array& a : k.c.inputs) line += " " + to_string(type_of(a));
  return line + k.notes;
}

void append_to_log(const std::string& line) {
  const char* path = std::getenv("BT_LOG_OPS");
  if (path && *path) std::ofstream(path, std::ios::app) << line << "\n";
}

}  // namespace

std::string check_op(const OpCase& c) {
  const OpTable ops = c.ops.empty() ? op_table() : c.ops;
  Checked k{
      c, find_op(ops, c.op), internal::trace(c.build, internal::types_of(c.inputs)), {}};
  check_program(k, ops);
  k.outputs = eval_graph(k.graph, c.inputs);
  internal::check_values(k);
  check_points(k);
  internal::check_calculus(k);
  if (c.check_batch) internal::check_batch(k);
  if (c.check_positions) internal::check_positions(k);
  internal::check_etp(k);
  internal::check_plan(k);
  internal::check_edges(k);
  const std::string line = log_line(k);
  append_to_log(line);
  return line;
}

Array uniform(Shape shape, double low, double high, std::uint64_t seed) {
  return random_uniform(rng_key(seed), std::move(shape), low, high, DType::f64);
}

Array distinct(Shape shape, double gap, std::uint64_t seed) {
  Array a(DType::f64, std::move(shape));
  const std::int64_t n = a.size();
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const RngKey key = rng_key(seed);
  std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return uniform_at(key, static_cast<std::uint64_t>(i)) <
           uniform_at(key, static_cast<std::uint64_t>(j));
  });
  double* p = a.mutable_data<double>();
  for (std::int64_t i = 0; i < n; ++i)  // centred, never on a multiple of the gap
    p[i] = (static_cast<double>(order[static_cast<std::size_t>(i)] - n / 2) + 0.37) * gap;
  return a;
}

}  // namespace braintrace::testing
