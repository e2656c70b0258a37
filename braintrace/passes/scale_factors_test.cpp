// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/scale_factors.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace scale_factors_test {

using namespace braintrace;
using braintrace::testing::check_same_values;
using braintrace::testing::written;

namespace {

// A number, two vectors of 12 numbers, a matrix of 12 x 12, and data of three samples.
const std::vector<Type> types = {{DType::f64, {}},
                                 {DType::f64, {12}},
                                 {DType::f64, {12}},
                                 {DType::f64, {12, 12}},
                                 {DType::f64, {3, 12}}};

// Multiplications of large arrays by the number that are left, with every value the same.
std::int64_t left(const ValuesFn& f) {
  const Graph g = written(types, f), after = dce(scale_factors(g));
  check_same_values(g, after);
  std::int64_t found = 0;
  std::vector<bool> is_spread(after.num_values(), false);
  for (const Node& n : after.nodes()) {
    if (n.op->name == "broadcast")
      is_spread[n.outputs[0].index] =
          after.type(n.inputs[0]).size() == 1 && after.type(n.outputs[0]).size() == 144;
    if (n.op->name == "mul")
      found += is_spread[n.inputs[0].index] || is_spread[n.inputs[1].index];
  }
  return found;
}

Value outer(const Value& x, const Value& y) {
  return expand_dims(x, 1) * expand_dims(y, 0);
}
Value product(const Value& x, const Value& y) {
  return dot_general(x, y, {.lhs_contract = {0}, .rhs_contract = {0}});
}

}  // namespace

TEST_CASE("a number goes to the vectors of an outer product") {
  CHECK(left([](const Values& in) { return Values{in[0] * outer(in[1], in[2])}; }) == 0);
}

TEST_CASE("a number goes through sums, differences, signs and views") {
  CHECK(left([](const Values& in) {
          const Value met = expand_dims(in[1], 0) * in[3];
          return Values{in[3] + in[0] * transpose(-(outer(in[1], in[2]) - met), {1, 0})};
        }) == 0);
}

TEST_CASE("a number goes to one factor of a product, and into sums over samples") {
  CHECK(left([](const Values& in) {
          const Value samples =
              sum(expand_dims(in[4], 2) * expand_dims(in[4] * 2.0, 1), {.axes = {0}});
          return Values{in[0] * product(in[4], in[4]), in[0] * samples};
        }) == 0);
}

TEST_CASE("what something else reads, or is no product, is multiplied as it is") {
  CHECK(left([](const Values& in) {
          const Value p = outer(in[1], in[2]), q = tanh(in[3]) * in[3];
          return Values{p, in[0] * p, in[0] * q, in[0] * (in[3] + outer(in[1], in[2]))};
        }) == 3);
}

TEST_CASE("a number does not go through a conversion") {
  CHECK(left([](const Values& in) {
          return Values{in[0] *
                        astype(astype(outer(in[1], in[2]), DType::f32), DType::f64)};
        }) == 1);
}

TEST_CASE("a number that is no number at every position stays") {
  const auto f = [](const Values& in) {
    return Values{expand_dims(in[1], 1) * outer(in[1], in[2])};
  };
  const Graph g = written(types, f);
  CHECK(scale_factors(g).nodes().size() == g.nodes().size());
}

}  // namespace scale_factors_test
