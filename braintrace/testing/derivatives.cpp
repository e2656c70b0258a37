// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/derivatives.h"

#include <fmt/format.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/region.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/finite_differences.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/jvp.h"
#include "braintrace/transforms/vjp.h"
#include "braintrace/transforms/vmap.h"

namespace braintrace::testing {
namespace {

std::vector<Array> random_like(const std::vector<Type>& types, std::uint64_t seed) {
  std::vector<Array> out;
  for (const Type& t : types) out.push_back(uniform(t.shape, -1, 1, seed++));
  return out;
}

std::vector<Array> joined(std::vector<Array> a, const std::vector<Array>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Array> tail(const std::vector<Array>& all, std::size_t from) {
  return {all.begin() + static_cast<std::ptrdiff_t>(from), all.end()};
}

Array lane_of(const Array& a, std::int64_t lane) {
  Ints start(a.shape().size(), 0), step(a.shape().size(), 1);
  Shape size = a.shape();
  start[0] = lane;
  size[0] = 1;
  return a.sliced(start, size, step).reshaped({a.shape().begin() + 1, a.shape().end()});
}

}  // namespace

Graph traced(const ValuesFn& f, const std::vector<Array>& like) {
  std::vector<Type> types;
  for (const Array& a : like) types.push_back(type_of(a));
  Traced t = trace(f, types);
  BT_REQUIRE(t.captured.empty(), "traced: the program uses values of another trace");
  return std::move(t.graph);
}

std::vector<Array> central_differences(const Graph& g, const std::vector<Array>& inputs,
                                       const std::vector<Array>& directions) {
  std::vector<Array> along;
  std::size_t next = 0;
  for (const Array& a : inputs)
    along.push_back(is_float(a.dtype()) ? directions.at(next++) : a);
  const std::vector<Array> all = directional_derivative(
      [&](const std::vector<Array>& x) { return eval_graph(g, x); }, inputs, along);
  std::vector<Array> out;
  const std::vector<Type> types = g.output_types();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_float(types[i].dtype)) out.push_back(all[i]);
  return out;
}

void check_derivatives(const Graph& g, const std::vector<Array>& inputs,
                       DerivativeChecks checks) {
  std::vector<Type> moving;
  for (const Array& a : inputs)
    if (is_float(a.dtype())) moving.push_back(type_of(a));
  const std::vector<Array> d = random_like(moving, 11);
  const std::vector<Array> both = eval_graph(jvp(g), joined(inputs, d));
  const std::vector<Array> tangents = tail(both, g.outputs().size());
  const std::vector<Array> want = central_differences(g, inputs, d);
  for (std::size_t i = 0; i < want.size(); ++i)
    check_close(fmt::format("jvp against differences, float output {}", i), tangents[i],
                want[i], tol::f64_diff);
  if (!checks.reverse) return;
  std::vector<Type> outputs;
  for (const Array& a : tangents) outputs.push_back(type_of(a));
  const std::vector<Array> ct = random_like(outputs, 23);
  const std::vector<Array> back = eval_graph(vjp(g), joined(inputs, ct));
  const double forward = dot_product(ct, tangents).value;
  const double reverse = dot_product(tail(back, g.outputs().size()), d).value;
  check_close("vjp against jvp", scalar(reverse, DType::f64), scalar(forward, DType::f64),
              tol::f64);
  const std::vector<Array> values = eval_graph(g, inputs);
  for (std::size_t i = 0; i < values.size(); ++i) {
    check_close(fmt::format("jvp keeps output {}", i), both[i], values[i], tol::f64);
    check_close(fmt::format("vjp keeps output {}", i), back[i], values[i], tol::f64);
  }
}

void check_lanes(const Graph& g, const std::vector<Array>& inputs,
                 const std::vector<bool>& batched) {
  VmapOptions options;
  std::int64_t lanes = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    options.in_axes.push_back(batched[i] ? BatchAxis(0) : std::nullopt);
    if (batched[i]) lanes = inputs[i].shape()[0];
  }
  BT_REQUIRE(lanes >= 0, "check_lanes: no input is batched");
  const std::vector<Array> got = eval_graph(vmap(g, lanes, options), inputs);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    std::vector<Array> one = inputs;
    for (std::size_t i = 0; i < one.size(); ++i)
      if (batched[i]) one[i] = lane_of(inputs[i], lane);
    const std::vector<Array> want = eval_graph(g, one);
    for (std::size_t k = 0; k < want.size(); ++k)
      check_close(fmt::format("lane {} of output {}", lane, k), lane_of(got[k], lane),
                  want[k], value_tolerance(want[k].dtype()));
  }
}

}  // namespace braintrace::testing
