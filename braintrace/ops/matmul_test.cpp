// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("matmul") {
  check_op(
      {.op = "matmul",
       .build = [](const Values& in) -> Values { return {matmul(in[0], in[1], in[2])}; },
       .inputs = {uniform({2, 3}, -1, 1), uniform({3, 4}, -1, 1, 2),
                  uniform({4}, -1, 1, 3)},
       .expect = {
           {{array({2}, {1, 2}, DType::f64), array({2, 2}, {3, 4, 5, 6}, DType::f64),
             array({2}, {0.5, -0.5}, DType::f64)},
            {array({2}, {13.5, 15.5}, DType::f64)}}}});
}

TEST_CASE("matmul of a vector without bias") {
  check_op({.op = "matmul",
            .build = [](const Values& in) -> Values { return {matmul(in[0], in[1])}; },
            .inputs = {uniform({3}, -1, 1), uniform({3, 2}, -1, 1, 2)}});
}

TEST_CASE("matmul with three leading axes") {
  check_op(
      {.op = "matmul",
       .build = [](const Values& in) -> Values { return {matmul(in[0], in[1], in[2])}; },
       .inputs = {uniform({2, 1, 3, 2}, -1, 1), uniform({2, 2}, -1, 1, 2),
                  uniform({2}, -1, 1, 3)}});
}

TEST_CASE("matmul of an empty batch is empty, over an empty axis the bias") {
  CHECK(matmul(zeros({0, 3}), zeros({3, 2})).shape() == Shape{0, 2});
  CHECK(matmul(zeros({1, 0}), zeros({0, 2}), Value(array({1, 2}))).array() ==
        array({1, 2}, {1, 2}));
}

TEST_CASE("matmul takes integer data to the weight's type") {
  CHECK(matmul(Array::from<std::int32_t>({2}, {1, 0}), array({2, 1}, {5, 7})).array() ==
        array({1}, {5}));
}

TEST_CASE("matmul refuses shapes that do not chain") {
  CHECK_THROWS_WITH_AS(
      matmul(zeros({2, 3}), zeros({4, 5})),
      doctest::Contains("matmul: x must be [..., 4] for weight [4,5], got [2,3]"),
      UserError);
  CHECK_THROWS_AS(matmul(zeros({2, 3}), zeros({3})), UserError);
  CHECK_THROWS_AS(matmul(scalar(1), zeros({1, 1})), UserError);
  CHECK_THROWS_WITH_AS(matmul(zeros({2, 3}), zeros({3, 5}), Value(zeros({3}))),
                       doctest::Contains("matmul: bias must be [5], got [3]"), UserError);
}

TEST_CASE("matmul hooks stand before the op, which names them") {
  const auto builder = Builder::create();
  const Value x = builder->input({DType::f32, {2}});
  const Value w = builder->input({DType::f32, {2, 2}});
  const Value b = builder->input({DType::f32, {2}});
  const Hook bounded = [](const Value& v) { return tanh(v); };
  const Value y = matmul(x, w, b, {.weight = bounded, .bias = bounded});
  const Graph g = builder->finish(Values{y});
  REQUIRE(g.nodes().size() == 3);
  CHECK(g.nodes()[2].attrs.text("hooks") == "weight,bias");
  CHECK_THROWS_AS(matmul(zeros({2}), zeros({2, 2}), {}, {.bias = bounded}), UserError);
}

TEST_CASE("matmul in program text may not name unknown hooks") {
  CHECK_THROWS_AS(parse("in %0:f32[2] %1:f32[2,2] %2:f32[2] = matmul "
                        "{hooks=\"gate\"} %0 %1 out %2"),
                  UserError);
}

TEST_CASE("matmul lets every state of the last axis read every other") {
  const std::vector<Type> in = {{DType::f32, {3}}, {DType::f32, {3, 3}}};
  const std::vector<Type> out = {{DType::f32, {3}}};
  const Attrs attrs;
  const Signature s{in, out, attrs};
  const auto a = matmul_op.etp->adjacency(s, 3);
  REQUIRE(a);
  CHECK(a->depends == std::vector<bool>(9, true));
  CHECK(matmul_op.etp->reference_name(s) == "etp_mv");
}

}  // namespace
}  // namespace braintrace
