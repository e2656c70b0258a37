// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

Array table_rows(Shape shape, const std::vector<std::int32_t>& values) {
  return Array::from<std::int32_t>(std::move(shape), values);
}

Values look_up(const Values& in) { return {embedding(in[0], in[1])}; }

TEST_CASE("embedding") {
  check_op({.op = "embedding",
            .build = look_up,
            .inputs = {table_rows({4}, {0, 2, 2, 1}), uniform({3, 2}, -1, 1)},
            .expect = {{{table_rows({1}, {1}), array({2, 2}, {1, 2, 3, 4}, DType::f64)},
                        {array({1, 2}, {3, 4}, DType::f64)}}}});
}

TEST_CASE("embedding of one index and of a block of indices") {
  check_op({.op = "embedding",
            .build = look_up,
            .inputs = {table_rows({}, {2}), uniform({3, 2}, -1, 1)}});
  check_op({.op = "embedding",
            .build = look_up,
            .inputs = {table_rows({2, 2}, {0, 1, 1, 2}), uniform({3, 2}, -1, 1)}});
}

TEST_CASE("embedding of no index is empty") {
  CHECK(embedding(table_rows({0}, {}), zeros({3, 2})).shape() == Shape{0, 2});
}

TEST_CASE("embedding refuses indices outside the table") {
  CHECK_THROWS_WITH_AS(embedding(table_rows({1}, {3}), zeros({3, 2})),
                       doctest::Contains("embedding: index 3 is outside the 3 rows"),
                       UserError);
  CHECK_THROWS_AS(embedding(table_rows({1}, {-1}), zeros({3, 2})), UserError);
}

TEST_CASE(
    "embedding refuses indices that are no integers and tables that are no matrix") {
  CHECK_THROWS_WITH_AS(embedding(zeros({1}), zeros({3, 2})),
                       doctest::Contains("indices must be i32, got f32[1]"), UserError);
  CHECK_THROWS_AS(embedding(table_rows({1}, {0}), zeros({3})), UserError);
  CHECK_THROWS_AS(embedding(table_rows({1}, {0}), table_rows({1, 1}, {0})), UserError);
}

TEST_CASE("embedding is filtered as one-hot rows and has no anchor") {
  const Values in = {table_rows({2}, {2, 0}), zeros({3, 1})}, out;
  const Attrs attrs;
  const Value x = embedding_op.etp->x_repr({embedding_op, in, out, attrs, {}});
  CHECK(x.array() == array({2, 3}, {0, 0, 1, 1, 0, 0}));
  const std::vector<Type> types = {in[0].type(), in[1].type()}, y;
  CHECK_FALSE(embedding_op.etp->anchored({types, y, attrs}));
}

}  // namespace
}  // namespace braintrace
