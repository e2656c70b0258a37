// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/outer_products.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ir/print.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace outer_products_test {

using namespace braintrace;
using braintrace::testing::written;

namespace {

const Type left{DType::f64, {7, 1, 5, 2}}, right{DType::f64, {3, 2, 4, 1}};
const DotDims shared_axis{
    .lhs_contract = {1}, .rhs_contract = {3}, .lhs_batch = {3}, .rhs_batch = {1}};

Graph checked(const Graph& g) {
  const Graph after = dce(outer_products(g));
  testing::check_same_values(g, after);
  return after;
}

bool has_product(const Graph& g) {
  return std::any_of(g.nodes().begin(), g.nodes().end(),
                     [](const Node& n) { return n.op->name == "dot_general"; });
}

}  // namespace

TEST_CASE("products that sum over one element become multiplications") {
  const Graph g = written({left, right}, [](const Values& in) {
    return Values{dot_general(in[0], in[1], shared_axis),
                  dot_general(in[0], in[1], {.lhs_contract = {1}, .rhs_contract = {3}})};
  });
  CHECK_FALSE(has_product(checked(g)));
}

TEST_CASE("a product of stretched values is multiplied under the axes it is read") {
  const Graph g =
      written({{DType::f64, {3, 4}}, {DType::f64, {3, 5}}}, [](const Values& in) {
        const Value y = expand_dims(in[0], 2) * expand_dims(in[1], 1);  // [3,4,5]
        return Values{tanh(transpose(y, {2, 0, 1}))};
      });
  const Graph after = checked(g);
  const Node& last = after.nodes().back();
  CHECK(last.op->name == "tanh");
  CHECK(std::any_of(after.nodes().begin(), after.nodes().end(), [&](const Node& n) {
    return n.op->name == "mul" && n.outputs[0] == last.inputs[0];
  }));
}

TEST_CASE("an outer product takes the axes under which it is read") {
  const Graph g = written({left, right}, [](const Values& in) {
    const Value y = dot_general(in[0], in[1], shared_axis);  // [2,7,5,3,4]
    const Value turned = reshape(transpose(y, {4, 0, 3, 1, 2}), {4, 2, 1, 3, 7, 1, 5});
    return Values{
        broadcast_to(transpose(turned, {0, 2, 1, 4, 3, 5, 6}), {4, 1, 2, 7, 3, 6, 5})};
  });
  const Graph after = checked(g);
  CHECK_FALSE(has_product(after));
  // Multiplied as it is read: no axis of the result is moved any more.
  bool multiplied = false;
  for (const Node& n : after.nodes()) {
    if (n.op->name == "mul") multiplied = true;
    if (multiplied) CHECK(n.op->name != "transpose");
  }
}

TEST_CASE("products that sum, or that others read as they are, stay or stay whole") {
  const Graph sums = written({{DType::f64, {4, 3}}, {DType::f64, {3, 5}}},
                             [](const Values& in) { return Values{dot(in[0], in[1])}; });
  CHECK(print(outer_products(sums)) == print(sums));
  const Graph both = written({left, right}, [](const Values& in) {
    const Value y = dot_general(in[0], in[1], shared_axis);
    return Values{y, transpose(y, {4, 0, 3, 1, 2})};
  });
  const Graph after = checked(both);
  CHECK(std::count_if(after.nodes().begin(), after.nodes().end(),
                      [](const Node& n) { return n.op->name == "mul"; }) == 1);
}

}  // namespace outer_products_test
