// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/dtype.h"

#include <bit>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace dtype_test {

using namespace braintrace;

namespace {
constexpr DType kAll[] = {DType::boolean, DType::i32, DType::bf16, DType::f32,
                          DType::f64};
float through_bf16(float f) { return static_cast<float>(BFloat16(f)); }
}  // namespace

TEST_CASE("element types have the names and sizes of the text form") {
  CHECK(to_string(DType::boolean) == "bool");
  CHECK(to_string(DType::i32) == "i32");
  CHECK(to_string(DType::bf16) == "bf16");
  CHECK(to_string(DType::f32) == "f32");
  CHECK(to_string(DType::f64) == "f64");
  CHECK(size_of(DType::boolean) == 1);
  CHECK(size_of(DType::i32) == 4);
  CHECK(size_of(DType::bf16) == 2);
  CHECK(size_of(DType::f32) == 4);
  CHECK(size_of(DType::f64) == 8);
}

TEST_CASE("a dtype is found again by its name and by no other") {
  for (DType d : kAll) CHECK(dtype_from_string(to_string(d)) == d);
  CHECK(!dtype_from_string("f16"));
  CHECK(!dtype_from_string(""));
  CHECK(!dtype_from_string("F32"));
}

TEST_CASE("promotion takes the larger type, bf16 counting as f32") {
  CHECK(promote(DType::boolean, DType::boolean) == DType::boolean);
  CHECK(promote(DType::boolean, DType::i32) == DType::i32);
  CHECK(promote(DType::i32, DType::f32) == DType::f32);
  CHECK(promote(DType::f64, DType::f32) == DType::f64);
  CHECK(promote(DType::bf16, DType::bf16) == DType::f32);
  CHECK(promote(DType::i32, DType::bf16) == DType::f32);
  CHECK(promote(DType::bf16, DType::f64) == DType::f64);
  for (DType a : kAll)
    for (DType b : kAll) CHECK(promote(a, b) == promote(b, a));
}

TEST_CASE("only f32 and f64 are floats, and bf16 does not compute") {
  for (DType d : kAll) {
    CHECK(is_float(d) == (d == DType::f32 || d == DType::f64));
    CHECK(is_computable(d) == (d != DType::bf16));
  }
}

TEST_CASE("visit_dtype calls with the C++ type") {
  const auto bytes = [](DType d) {
    return visit_dtype(d, []<class T>(T) { return sizeof(T); });
  };
  CHECK(bytes(DType::boolean) == sizeof(bool));
  CHECK(bytes(DType::i32) == 4);
  CHECK(bytes(DType::f32) == 4);
  CHECK(bytes(DType::f64) == 8);
  CHECK(visit_dtype(DType::i32, []<class T>(T) { return std::is_integral_v<T>; }));
  CHECK(!visit_dtype(DType::f32, []<class T>(T) { return std::is_integral_v<T>; }));
}

TEST_CASE("bf16 rounds to nearest, ties to even") {
  // 8 significant bits: one step at 1 is 2^-7.
  const float step = 0x1p-7f;
  CHECK(through_bf16(1.0f) == 1.0f);
  CHECK(through_bf16(1.0f + step) == 1.0f + step);
  CHECK(through_bf16(1.0f + 0.49f * step) == 1.0f);
  CHECK(through_bf16(1.0f + 0.51f * step) == 1.0f + step);
  CHECK(through_bf16(1.0f + 0.5f * step) == 1.0f);                // even below
  CHECK(through_bf16(1.0f + 1.5f * step) == 1.0f + 2.0f * step);  // even above
  CHECK(through_bf16(-1.0f - 1.5f * step) == -1.0f - 2.0f * step);
}

TEST_CASE("bf16 keeps zeros, infinities and NaN") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  CHECK(std::signbit(through_bf16(-0.0f)));
  CHECK(through_bf16(inf) == inf);
  CHECK(through_bf16(-inf) == -inf);
  CHECK(through_bf16(std::numeric_limits<float>::max()) == inf);
  CHECK(std::isnan(through_bf16(std::numeric_limits<float>::quiet_NaN())));
  // A NaN whose payload sits in the dropped half must not become an infinity.
  CHECK(std::isnan(through_bf16(std::bit_cast<float>(0x7f800001u))));
}

}  // namespace dtype_test
