// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/array.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

namespace array_test {

using namespace braintrace;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Doubles = std::vector<double>;

Array counting(Shape shape) {
  Doubles v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
  return array(std::move(shape), v, DType::f64);
}

}  // namespace

TEST_CASE("a default Array is the f32 scalar 0") {
  const Array a;
  CHECK(a.dtype() == DType::f32);
  CHECK(a.rank() == 0);
  CHECK(a.item() == 0.0);
}

TEST_CASE("makers fill every element") {
  CHECK(zeros({2, 2}).to_doubles() == Doubles{0, 0, 0, 0});
  CHECK(ones({3}, DType::i32).to_doubles() == Doubles{1, 1, 1});
  CHECK(full({2}, 2.5, DType::f64).to_doubles() == Doubles{2.5, 2.5});
  CHECK(full({2}, 2.5, DType::i32).to_doubles() == Doubles{2, 2});
  CHECK(array({1, 2, 3}).shape() == Shape{3});
  CHECK(array({2, 1}, {5, 6}).to_doubles() == Doubles{5, 6});
  CHECK(scalar(1.5).shape() == Shape{});
}

TEST_CASE("the number of values must match the shape") {
  CHECK_THROWS_WITH_AS(array({2, 2}, {1, 2, 3}),
                       "Array::from: shape [2,2] does not hold 3 values", UserError);
  CHECK_THROWS_AS(zeros({-1}), UserError);
}

TEST_CASE("buffers are 64-byte aligned") {
  for (std::int64_t n : {0, 1, 3, 17, 1000})
    CHECK(reinterpret_cast<std::uintptr_t>(zeros({n}).raw()) % 64 == 0);
}

TEST_CASE("writing to a copy leaves the original alone") {
  const Array a = array({1, 2, 3});
  Array b = a;
  b.mutable_data<float>()[0] = 9;
  CHECK(a.to_doubles() == Doubles{1, 2, 3});
  CHECK(b.to_doubles() == Doubles{9, 2, 3});
}

TEST_CASE("writing to a view packs it and leaves the base alone") {
  const Array a = counting({2, 3});
  Array row = a.sliced({1, 0}, {1, 3}, {1, 1});
  Array flipped = a.transposed({1, 0});
  row.mutable_data<double>()[0] = -1;
  flipped.mutable_data<double>()[1] = -2;
  CHECK(a == counting({2, 3}));
  CHECK(row.to_doubles() == Doubles{-1, 4, 5});
  CHECK(flipped.to_doubles() == Doubles{0, -2, 1, 4, 2, 5});
}

TEST_CASE("a sole owner writes in place") {
  Array a = zeros({4});
  const void* before = a.raw();
  a.mutable_data<float>()[0] = 1;
  CHECK(a.raw() == before);
}

TEST_CASE("transposed permutes axes without copying") {
  const Array a = counting({2, 3, 4});
  const Array t = a.transposed({2, 0, 1});
  CHECK(t.shape() == Shape{4, 2, 3});
  CHECK(t.raw() == a.raw());
  CHECK(!t.is_contiguous());
  CHECK(t.at(1) == a.at(4));              // t[0,0,1] = a[0,1,0]
  CHECK(t.at(6) == a.at(1));              // t[1,0,0] = a[0,0,1]
  CHECK(t.transposed({1, 2, 0}) == a);    // the inverse permutation
  CHECK(a.transposed({-1, 0, 1}) == t);   // negative axes
  CHECK(t.contiguous().is_contiguous());  // same values, packed
  CHECK(t.contiguous() == t);
  CHECK_THROWS_WITH_AS(a.transposed({0, 1}),
                       "transposed: [0,1] is not a permutation of the 3 axes", UserError);
  CHECK_THROWS_AS(a.transposed({0, 1, 1}), UserError);
}

TEST_CASE("sliced takes start, size and step per axis") {
  const Array a = counting({3, 4});
  CHECK(a.sliced({1, 1}, {2, 2}, {1, 2}).to_doubles() == Doubles{5, 7, 9, 11});
  CHECK(a.sliced({2, 3}, {3, 2}, {-1, -3}).to_doubles() == Doubles{11, 8, 7, 4, 3, 0});
  CHECK(a.sliced({3, 0}, {0, 4}, {1, 1}).size() == 0);
  // A slice of a slice adds its offset.
  const Array inner = a.sliced({1, 1}, {2, 3}, {1, 1}).sliced({1, 1}, {1, 2}, {1, 1});
  CHECK(inner.to_doubles() == Doubles{10, 11});
}

TEST_CASE("sliced refuses what leaves the array") {
  const Array a = counting({3, 4});
  CHECK_THROWS_WITH_AS(a.sliced({0, 2}, {3, 3}, {1, 1}),
                       doctest::Contains("axis 1 of [3,4] does not hold start 2, size 3"),
                       UserError);
  CHECK_THROWS_AS(a.sliced({-1, 0}, {1, 1}, {1, 1}), UserError);
  CHECK_THROWS_AS(a.sliced({0, 0}, {-1, 1}, {1, 1}), UserError);
  CHECK_THROWS_AS(a.sliced({0, 0}, {2, 1}, {-1, 1}), UserError);
  CHECK_THROWS_AS(a.sliced({0}, {1}, {1}), UserError);
}

TEST_CASE("broadcast_to repeats by stride 0") {
  const Array a = array({2, 1}, {5, 6}, DType::f64);
  const Array b = a.broadcast_to({3, 2, 2});
  CHECK(b.raw() == a.raw());
  CHECK(b.to_doubles() == Doubles{5, 5, 6, 6, 5, 5, 6, 6, 5, 5, 6, 6});
  CHECK(scalar(7).broadcast_to({2}).to_doubles() == Doubles{7, 7});
  CHECK(scalar(7).broadcast_to({0}).size() == 0);
  CHECK_THROWS_WITH_AS(a.broadcast_to({3, 2}), doctest::Contains("[2,1] does not"),
                       UserError);
}

TEST_CASE("a stretched axis of size 1 is still contiguous, of size 2 is not") {
  CHECK(scalar(1).broadcast_to({1, 1}).is_contiguous());
  CHECK(!scalar(1).broadcast_to({2}).is_contiguous());
}

TEST_CASE("views of every kind are packed element by element") {
  for (const DType d :
       {DType::boolean, DType::i32, DType::bf16, DType::f32, DType::f64}) {
    CAPTURE(to_string(d));
    const Array a = counting({2, 3, 4}).astype(d);
    const Array views[] = {
        a.transposed({0, 2, 1}),
        a.transposed({1, 0, 2}),
        a.transposed({2, 1, 0}),
        a.sliced({1, 2, 3}, {2, 3, 4}, {-1, -1, -1}),
        a.sliced({0, 0, 0}, {2, 3, 2}, {1, 1, 2}),
        a.sliced({0, 1, 0}, {2, 2, 4}, {1, 1, 1}),
        a.sliced({0, 0, 1}, {2, 3, 1}, {1, 1, 1}),
        a.sliced({0, 0, 1}, {2, 3, 1}, {1, 1, 1}).broadcast_to({2, 2, 3, 5}),
        a.sliced({1, 1, 1}, {1, 1, 1}, {1, 1, 1}).broadcast_to({2, 3, 4})};
    for (const Array& view : views) {
      CHECK(!view.is_contiguous());
      const Array packed = view.contiguous();
      CHECK(packed.is_contiguous());
      CHECK(packed == view);
    }
  }
}

TEST_CASE("reshaped keeps row-major order, also of a view") {
  const Array a = counting({2, 3});
  CHECK(a.reshaped({3, 2}).to_doubles() == a.to_doubles());
  CHECK(a.reshaped({6}).raw() == a.raw());
  CHECK(a.transposed({1, 0}).reshaped({6}).to_doubles() == Doubles{0, 3, 1, 4, 2, 5});
  CHECK(a.sliced({1, 0}, {1, 3}, {1, 1}).reshaped({3}).to_doubles() == Doubles{3, 4, 5});
  CHECK_THROWS_WITH_AS(a.reshaped({4}), "reshaped: [2,3] has 6 elements, [4] has 4",
                       UserError);
}

TEST_CASE("astype to i32 truncates, saturates and maps NaN to 0") {
  const Array a = array({1.9, -1.9, 1e10, -1e10, kNaN, kInf, -kInf}, DType::f64);
  CHECK(a.astype(DType::i32).to_doubles() ==
        Doubles{1, -1, 2147483647, -2147483648.0, 0, 2147483647, -2147483648.0});
}

TEST_CASE("astype to bool asks for non-zero, NaN included") {
  const Array a = array({0, -0.0, 0.1, -3, kNaN}, DType::f64);
  CHECK(a.astype(DType::boolean).to_doubles() == Doubles{0, 0, 1, 1, 1});
}

TEST_CASE("astype rounds to the nearest float") {
  CHECK(scalar(0.1, DType::f64).astype(DType::f32).item() == double{0.1f});
  CHECK(std::isinf(scalar(1e300, DType::f64).astype(DType::f32).item()));
  CHECK(scalar(1.01, DType::f64).astype(DType::bf16).item() == 1.0078125);
}

TEST_CASE("data refuses another element type or a scattered view") {
  const Array a = counting({2, 3});
  CHECK_THROWS_AS(a.data<float>(), InternalError);
  CHECK_THROWS_AS(a.transposed({1, 0}).data<double>(), InternalError);
  CHECK(a.data<double>()[5] == 5);
  Array b = a;
  CHECK_THROWS_AS(b.mutable_data<float>(), InternalError);
}

TEST_CASE("at and item check their range") {
  const Array a = counting({2, 3});
  CHECK(a.at(4) == 4);
  CHECK_THROWS_WITH_AS(a.at(6), "Array::at: index 6 is outside 6 elements", UserError);
  CHECK_THROWS_AS(a.at(-1), UserError);
  CHECK(counting({1, 1}).item() == 0);
  CHECK_THROWS_WITH_AS(
      a.item(), "Array::item: needs exactly one element, got shape [2,3]", UserError);
}

TEST_CASE("equality is by type, shape and bits, with all NaNs equal") {
  CHECK(array({1, 2}) == array({1, 2}));
  CHECK(!(array({1, 2}) == array({1, 3})));
  CHECK(!(array({1, 2}) == array({1, 2}, DType::f64)));
  CHECK(!(array({1, 2}) == array({1, 2}, {1, 2})));
  CHECK(array({kNaN}) == array({-kNaN}));
  CHECK(!(array({kNaN}) == array({0})));
  CHECK(!(array({0.0}) == array({-0.0})));
  CHECK(zeros({0, 2}) == zeros({0, 2}));
  CHECK(!(zeros({0, 2}) == zeros({2, 0})));
  CHECK(counting({2, 2}).transposed({1, 0}) == array({2, 2}, {0, 2, 1, 3}, DType::f64));
}

TEST_CASE("an Array prints every element exactly") {
  CHECK(to_string(array({1, 0.5})) == "f32[2](1, 0.5)");
  CHECK(to_string(array({0.1})) == "f32[1](0.1)");
  CHECK(to_string(array({1.0 / 3}, DType::f64)) == "f64[1](0.3333333333333333)");
  CHECK(to_string(array({1, 0}, DType::boolean)) == "bool[2](true, false)");
  CHECK(to_string(array({-7}, DType::i32)) == "i32[1](-7)");
  CHECK(to_string(array({kNaN, -kNaN, kInf, -kInf, -0.0})) ==
        "f32[5](nan, nan, inf, -inf, -0)");
  CHECK(to_string(zeros({0, 3})) == "f32[0,3]()");
  CHECK(to_string(scalar(2)) == "f32[](2)");
}

TEST_CASE("a borrowed array writes the memory it was given unless its owner is shared") {
  float memory[4] = {1, 2, 3, 4};
  auto owner = std::make_shared<int>(0);
  Array a = Array::borrowed(DType::f32, {2}, memory, owner);
  CHECK_FALSE(a.is_unique());
  owner.reset();
  CHECK(a.is_unique());
  a.mutable_data<float>()[0] = 7;
  CHECK(memory[0] == 7);
  a.point_to(memory + 2);
  CHECK(a == array({3, 4}));
  Array b = a;
  b.mutable_data<float>()[0] = 9;
  CHECK(memory[2] == 3);
}

}  // namespace array_test
