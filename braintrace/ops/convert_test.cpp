// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/slopes.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kNan;
using testing::slopes;
using testing::uniform;

TEST_CASE("convert") {
  check_op(
      {.op = "convert",
       .build = [](const Values& in) -> Values { return {astype(in[0], DType::f64)}; },
       .inputs = {array({3}, {1, -2, 3}, DType::i32)},
       .expect = {{{array({7}, DType::i32)}, {array({7}, DType::f64)}}},
       .differentiable = false});
}

TEST_CASE("convert between floats passes the slope on") {
  const auto f = [](const Values& v) {
    return 3 * astype(astype(v[0], DType::f32), DType::f64);
  };
  CHECK(slopes(f, {0.5}) == std::vector<double>{3});
}

TEST_CASE("convert to integers truncates, saturates and makes NaN 0") {
  const Array x = array({1.9, -1.9, 1e20, -1e20, kNan}, DType::f64);
  CHECK(astype(x, DType::i32).array() ==
        Array::from<std::int32_t>({5}, {1, -1, 2147483647, -2147483647 - 1, 0}));
}

TEST_CASE("convert to boolean asks whether a number is not 0") {
  CHECK(astype(array({0, 0.5, -2}), DType::boolean).array() ==
        array({0, 1, 1}, DType::boolean));
}

TEST_CASE("convert through bf16 rounds to 8 bits") {
  const Value y = astype(astype(array({1.001, 3}), DType::bf16), DType::f32);
  CHECK(y.array() == array({1, 3}));
}

TEST_CASE("convert to the same type adds no node") {
  const auto builder = Builder::create();
  const Value x = builder->input({DType::f32, {2}});
  CHECK(builder->finish(Values{astype(x, DType::f32)}).nodes().empty());
}

TEST_CASE("no tangent passes through an integer") {
  check_op({.op = "convert",
            .build = [](const Values& in) -> Values {
              return {astype(astype(in[0], DType::i32), DType::f64)};
            },
            .inputs = {uniform({3}, -2.9, 2.9)},
            .differentiable = false});
}

}  // namespace
}  // namespace braintrace
