// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace braintrace {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
};
constexpr std::array<Entry, 5> kTable = {{{DType::boolean, "bool"},
                                          {DType::i32, "i32"},
                                          {DType::bf16, "bf16"},
                                          {DType::f32, "f32"},
                                          {DType::f64, "f64"}}};

}  // namespace

std::string_view to_string(DType d) { return kTable[static_cast<std::size_t>(d)].name; }

std::optional<DType> dtype_from_string(std::string_view name) {
  for (const Entry& e : kTable)
    if (e.name == name) return e.dtype;
  return std::nullopt;
}

DType promote(DType a, DType b) {
  const DType m = std::max(a, b);
  return m == DType::bf16 ? DType::f32 : m;
}

BFloat16::BFloat16(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  if (std::isnan(f)) {
    bits = static_cast<std::uint16_t>((u >> 16) | 0x40u);
    return;
  }
  const std::uint32_t round = 0x7fffu + ((u >> 16) & 1u);
  bits = static_cast<std::uint16_t>((u + round) >> 16);
}

BFloat16::operator float() const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace braintrace
