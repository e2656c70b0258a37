// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("lora_matmul") {
  check_op(
      {.op = "lora_matmul",
       .build = [](const Values& in) -> Values {
         return {lora_matmul(in[0], in[1], in[2], 0.5, in[3])};
       },
       .inputs = {uniform({2, 3}, -1, 1), uniform({3, 2}, -1, 1, 2),
                  uniform({2, 4}, -1, 1, 3), uniform({4}, -1, 1, 4)},
       .expect = {{{array({2}, {1, 2}, DType::f64), array({2, 1}, {3, 4}, DType::f64),
                    array({1, 2}, {2, 6}, DType::f64), array({2}, {1, -1}, DType::f64)},
                   {array({2}, {12, 32}, DType::f64)}}}});
}

TEST_CASE("lora_matmul of a vector and of two leading axes") {
  auto build = [](const Values& in) -> Values {
    return {lora_matmul(in[0], in[1], in[2], 2.0)};
  };
  check_op({.op = "lora_matmul",
            .build = build,
            .inputs = {uniform({3}, -1, 1), uniform({3, 1}, -1, 1, 2),
                       uniform({1, 2}, -1, 1, 3)}});
  check_op({.op = "lora_matmul",
            .build = build,
            .inputs = {uniform({2, 2, 3}, -1, 1), uniform({3, 2}, -1, 1, 2),
                       uniform({2, 2}, -1, 1, 3)}});
}

TEST_CASE("lora_matmul has one trace, in effective-weight space") {
  const Values in = {zeros({2}), array({2, 1}, {1, 2}), array({1, 2}, {3, 4})}, out;
  const Attrs attrs = {{"alpha", 2.0}};
  const Values w = lora_matmul_op.etp->effective({lora_matmul_op, in, out, attrs, {}});
  REQUIRE(w.size() == 1);
  CHECK(w[0].array() == array({2, 2}, {6, 8, 12, 16}));
}

TEST_CASE("lora_matmul refuses what does not chain") {
  CHECK_THROWS_WITH_AS(
      lora_matmul(zeros({2}), zeros({2, 3}), zeros({4, 2})),
      doctest::Contains("needs b [in, rank] and a [rank, out], got [2,3] and [4,2]"),
      UserError);
  CHECK_THROWS_AS(lora_matmul(zeros({3}), zeros({2, 1}), zeros({1, 2})), UserError);
  CHECK_THROWS_AS(lora_matmul(zeros({2}), zeros({2, 1}), zeros({1, 2}),
                              std::numeric_limits<double>::infinity()),
                  UserError);
  CHECK_THROWS_AS(
      lora_matmul(zeros({2}), zeros({2, 1}), zeros({1, 2}), 1.0, Value(zeros({3}))),
      UserError);
}

}  // namespace
}  // namespace braintrace
