// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/split_states.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/print.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/passes/spread_vectors.h"
#include "braintrace/testing/pass_check.h"

namespace split_states_test {

using namespace braintrace;
using braintrace::testing::check_same_values;
using braintrace::testing::written;

namespace {

// Every array of the graph and of its loops whose last axis (before ones) is n long.
int arrays_with_last_axis(const Graph& g, std::int64_t n) {
  int found = 0;
  for (const Node& node : g.nodes()) {
    for (ValueId v : node.outputs) {
      Shape s = g.type(v).shape;
      while (!s.empty() && s.back() == 1) s.pop_back();
      if (!s.empty() && s.back() == n) ++found;
    }
    for (const auto& [name, value] : node.attrs.entries())
      if (const auto* sub = std::get_if<GraphPtr>(&value))
        found += arrays_with_last_axis(**sub, n);
  }
  return found;
}

Graph split(const Graph& g) { return optimize(split_states(optimize(g))); }

const Type rows{DType::f64, {8, 16}};
const Type stacked{DType::f64, {5, 8, 16}};

}  // namespace

TEST_CASE("states joined in a loop go through it one by one") {
  const Graph g = written({rows, rows, stacked}, [](const Values& in) {
    const ScanResult r = scan(
        [](const Values& s) {
          const Value v = squeeze(slice_axis(s[0], 2, 0, 1), 2);
          const Value a = squeeze(slice_axis(s[0], 2, 1, 1), 2);
          const Value next = stack({v * 0.9 + a * s[1], a * 0.8 - v}, -1);
          return Values{next, tanh(next)};
        },
        {stack({in[0], in[1]}, -1)}, {in[2]});
    return Values{sum(r.ys[0] * 2.0, {.axes = {-1}}), sum(r.carry[0], {.axes = {0, 2}})};
  });
  const Graph after = split(g);
  check_same_values(g, after);
  CHECK(arrays_with_last_axis(optimize(g), 2) > 0);
  CHECK(arrays_with_last_axis(after, 2) == 0);
}

TEST_CASE("a loop that starts from zeros and joins its states is split as well") {
  const Graph g = written({stacked}, [](const Values& in) {
    const Value zero = broadcast_to(Value(scalar(0, DType::f64)), {8, 16, 3});
    const ScanResult r = scan(
        [](const Values& s) {
          const Value total = sum(s[0], {.axes = {-1}}) + s[1];
          return Values{stack({total, total * 0.5, total - s[1]}, -1), total};
        },
        {zero}, {in[0]}, {.reverse = true});
    return Values{r.ys[0], slice_axis(r.carry[0], 2, 1, 2)};
  });
  const Graph after = split(g);
  check_same_values(g, after);
  for (const Node& n : after.nodes())
    for (ValueId v : n.outputs) CHECK(after.type(v).shape != Shape{8, 16, 3});
}

TEST_CASE("an array that comes whole and stays whole is left alone") {
  const Graph g =
      written({{DType::f64, {8, 16, 2}}, {DType::f64, {2, 3}}},
              [](const Values& in) { return Values{dot(tanh(in[0]), in[1])}; });
  CHECK(print(optimize(split_states(g))) == print(optimize(g)));
}

TEST_CASE("joined products are seen through sums over other axes") {
  const Graph g = written({stacked, stacked}, [](const Values& in) {
    const Value x = reshape(in[0], {5, 8, 16, 1, 1});
    const Value m = reshape(stack({in[1], in[1] * 2.0}, -1), {5, 8, 1, 16, 2});
    return Values{sum(x * m, {.axes = {0}})};
  });
  const Graph after = split(g);
  check_same_values(g, after);
  for (const Node& n : after.nodes())
    for (ValueId v : n.outputs) CHECK(after.type(v).shape != Shape{5, 8, 16, 16, 2});
}

TEST_CASE("transposed, stretched, reshaped and sliced parts keep their order") {
  const Graph g = written({rows, rows}, [](const Values& in) {
    const Value s = stack({in[0], in[1]}, -1);
    const Value t = transpose(s, {1, 0, 2});
    const Value wide = broadcast_to(reshape(t, {16, 8, 1, 2}), {16, 8, 3, 2});
    const Value flat = reshape(wide, {128, 3, 2});
    const Value both = concat({flat, slice(flat, {0, 0, 0}, {64, 3, 2})}, 0);
    return Values{exp(both), slice(both, {3, 1, 1}, {90, 2, 1})};
  });
  check_same_values(g, split(g));
}

TEST_CASE("a signal meets a trace without a product that turns the trace") {
  const Graph g =
      written({{DType::f64, {6, 9, 32}}, {DType::f64, {6, 32}}}, [](const Values& in) {
        return Values{dot_general(in[1], in[0],
                                  {.lhs_contract = {0},
                                   .rhs_contract = {0},
                                   .lhs_batch = {1},
                                   .rhs_batch = {2}})};
      });
  const Graph after = spread_vectors(g);
  check_same_values(g, after);
  for (const Node& n : after.nodes()) CHECK(n.op->name != "dot_general");
}

TEST_CASE("products that sum over the innermost axis stay products") {
  const Graph g =
      written({{DType::f64, {32, 9, 6}}, {DType::f64, {32, 6}}}, [](const Values& in) {
        return Values{dot_general(in[1], in[0],
                                  {.lhs_contract = {1},
                                   .rhs_contract = {2},
                                   .lhs_batch = {0},
                                   .rhs_batch = {0}})};
      });
  CHECK(print(spread_vectors(g)) == print(g));
}

}  // namespace split_states_test
