// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/shape.h"

#include <doctest/doctest.h>

#include "braintrace/base/error.h"

namespace shape_test {

using namespace braintrace;

TEST_CASE("a shape prints as a bracketed list") {
  CHECK(to_string(Shape{}) == "[]");
  CHECK(to_string(Shape{7}) == "[7]");
  CHECK(to_string(Shape{2, 0, 3}) == "[2,0,3]");
}

TEST_CASE("num_elements is the product, 1 for a scalar") {
  CHECK(num_elements(Shape{}) == 1);
  CHECK(num_elements(Shape{2, 3, 4}) == 24);
  CHECK(num_elements(Shape{2, 0, 4}) == 0);
}

TEST_CASE("check_shape names the caller and the negative dimension") {
  CHECK_NOTHROW(check_shape("f", Shape{}));
  CHECK_NOTHROW(check_shape("f", Shape{0}));
  CHECK_THROWS_WITH_AS(check_shape("reshape", Shape{2, -1}),
                       "reshape: dimensions must be >= 0, got [2,-1]", UserError);
}

TEST_CASE("check_shape stops at 2^40 elements, without overflow") {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  CHECK_NOTHROW(check_shape("f", Shape{1 << 20, 1 << 20}));
  CHECK_THROWS_WITH_AS(check_shape("f", Shape{1 << 20, (1 << 20) + 1}),
                       doctest::Contains("more than 2^40"), UserError);
  CHECK_THROWS_AS(check_shape("f", Shape{huge, huge, huge}), UserError);
  CHECK_THROWS_AS(check_shape("f", Shape{0, huge}), UserError);
  CHECK_THROWS_AS(check_shape("f", Shape{huge, 0}), UserError);
}

TEST_CASE("check_shape allows rank 32 and refuses rank 33") {
  CHECK_NOTHROW(check_shape("f", Shape(32, 1)));
  CHECK_THROWS_WITH_AS(check_shape("f", Shape(33, 1)),
                       "f: rank must be at most 32, got 33", UserError);
}

TEST_CASE("row-major strides count elements") {
  CHECK(row_major_strides(Shape{}) == Ints{});
  CHECK(row_major_strides(Shape{5}) == Ints{1});
  CHECK(row_major_strides(Shape{2, 3, 4}) == Ints{12, 4, 1});
}

TEST_CASE("shapes broadcast by the numpy rule") {
  CHECK(broadcast_shapes({}, {2, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes({2, 1}, {3}) == Shape{2, 3});
  CHECK(broadcast_shapes({4, 1, 3}, {2, 1}) == Shape{4, 2, 3});
  CHECK(broadcast_shapes({0}, {1}) == Shape{0});
  CHECK(!broadcast_shapes({2}, {3}));
  CHECK(!broadcast_shapes({0}, {2}));
}

TEST_CASE("broadcasts_to has a direction") {
  CHECK(broadcasts_to({1, 3}, {2, 3}));
  CHECK(broadcasts_to({}, {2, 3}));
  CHECK(broadcasts_to({2, 3}, {2, 3}));
  CHECK(!broadcasts_to({2, 3}, {1, 3}));
  CHECK(!broadcasts_to({1, 3}, {3}));
  CHECK(!broadcasts_to({2}, {3}));
}

TEST_CASE("negative axes count from the end") {
  CHECK(normalize_axis("f", -1, 3) == 2);
  CHECK(normalize_axis("f", -3, 3) == 0);
  CHECK(normalize_axis("f", 2, 3) == 2);
  CHECK_THROWS_WITH_AS(normalize_axis("sum", 3, 3),
                       "sum: axis 3 is out of range for rank 3", UserError);
  CHECK_THROWS_AS(normalize_axis("sum", -4, 3), UserError);
  CHECK_THROWS_AS(normalize_axis("sum", 0, 0), UserError);
}

TEST_CASE("normalize_axes sorts and refuses duplicates, also hidden ones") {
  CHECK(normalize_axes("f", {-1, 0}, 3) == Ints{0, 2});
  CHECK(normalize_axes("f", {}, 3) == Ints{});
  CHECK_THROWS_WITH_AS(normalize_axes("sum", {1, -2}, 3),
                       "sum: axes must be distinct, got [1,-2]", UserError);
}

TEST_CASE("iota_ints counts from 0") {
  CHECK(iota_ints(0) == Ints{});
  CHECK(iota_ints(3) == Ints{0, 1, 2});
}

}  // namespace shape_test
