// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types. f32, f64, i32 and boolean compute; bf16 is a storage type only.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace braintrace {

enum class DType : std::uint8_t { boolean, i32, bf16, f32, f64 };

// Asked at every step, so there is no call.
constexpr std::size_t size_of(DType d) {
  return d == DType::boolean ? 1 : d == DType::bf16 ? 2 : d == DType::f64 ? 8 : 4;
}
std::string_view to_string(DType d);
std::optional<DType> dtype_from_string(std::string_view name);

inline bool is_float(DType d) { return d == DType::f32 || d == DType::f64; }
inline bool is_computable(DType d) { return d != DType::bf16; }

// The type two operands meet in: boolean < i32 < f32 < f64 (bf16 acts as f32).
DType promote(DType a, DType b);

// Upper half of an IEEE float. Conversion rounds to nearest even and keeps NaN a NaN.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float f);
  explicit operator float() const;
  friend bool operator==(BFloat16, BFloat16) = default;
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// Calls f(T{}) with the C++ type of d. bf16 is excluded: convert first.
template <class F>
decltype(auto) visit_dtype(DType d, F&& f) {
  switch (d) {
    case DType::boolean:
      return f(bool{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::f64:
      return f(double{});
    default:
      return f(float{});
  }
}

}  // namespace braintrace
