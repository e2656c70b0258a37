// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/join_sums.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace join_sums_test {

using namespace braintrace;
using braintrace::testing::written;

namespace {

// A trace [samples, rows, columns], a signal, and the factors of a product.
const std::vector<Type> types = {{DType::f64, {3, 4, 5}},
                                 {DType::f64, {3, 1, 5}},
                                 {DType::f64, {3, 4}},
                                 {DType::f64, {3, 5}}};
const DotDims over_samples{.lhs_contract = {0}, .rhs_contract = {0}};

bool has_product(const Graph& g) {
  return std::any_of(g.nodes().begin(), g.nodes().end(),
                     [](const Node& n) { return n.op->name == "dot_general"; });
}

// Does the product vanish, with every value the same?
bool joins(const Graph& g, std::int64_t min_size = 60) {
  const Graph after = dce(join_sums(g, {.min_size = min_size}));
  testing::check_same_values(g, after);
  return !has_product(after);
}

Value past(const Values& in) { return sum(in[0] * in[1], {.axes = {0}}); }

}  // namespace

TEST_CASE("a product is added inside the large sum it is added to, from either side") {
  CHECK(joins(written(types, [](const Values& in) {
    return Values{past(in) + dot_general(in[2], in[3], over_samples)};
  })));
  CHECK(joins(written(types, [](const Values& in) {
    return Values{dot_general(in[2], in[3], over_samples) + past(in)};
  })));
}

TEST_CASE("a product with batch axes and several contracted ones is added inside too") {
  const std::vector<Type> several = {{DType::f64, {2, 3, 4, 5, 6}},
                                     {DType::f64, {2, 3, 4, 1, 6}},
                                     {DType::f64, {5, 3, 4, 2}},
                                     {DType::f64, {2, 4, 3, 6}}};
  CHECK(joins(written(several, [](const Values& in) {
    const DotDims dims{.lhs_contract = {3, 1},
                       .rhs_contract = {0, 2},
                       .lhs_batch = {2},
                       .rhs_batch = {1}};
    return Values{sum(in[0] * in[1], {.axes = {0, 1}}) + dot_general(in[2], in[3], dims)};
  })));
}

TEST_CASE("small sums, sums of sums and what others read stay") {
  CHECK_FALSE(joins(written(types,
                            [](const Values& in) {
                              return Values{past(in) +
                                            dot_general(in[2], in[3], over_samples)};
                            }),
                    61));
  CHECK_FALSE(joins(written(types, [](const Values& in) {
    return Values{sum(in[0] * in[1] + in[0], {.axes = {0}}) +
                  dot_general(in[2], in[3], over_samples)};
  })));
  CHECK_FALSE(joins(written(types, [](const Values& in) {
    const Value product = dot_general(in[2], in[3], over_samples);
    return Values{past(in) + product, product};
  })));
  CHECK_FALSE(joins(written(types, [](const Values& in) {
    const Value total = past(in);
    return Values{total + dot_general(in[2], in[3], over_samples), total};
  })));
}

TEST_CASE("a product that sums over another number of terms stays") {
  std::vector<Type> other = types;
  other[2] = {DType::f64, {7, 4}};
  other[3] = {DType::f64, {7, 5}};
  CHECK_FALSE(joins(written(other, [](const Values& in) {
    return Values{past(in) + dot_general(in[2], in[3], over_samples)};
  })));
}

}  // namespace join_sums_test
