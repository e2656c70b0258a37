// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

#include <Random123/philox.h>
#include <fmt/format.h>

namespace braintrace {
namespace {

RandomWords philox(RngKey key, std::uint64_t counter, std::uint32_t stream) {
  const r123::Philox4x32::ctr_type c = {{static_cast<std::uint32_t>(counter),
                                         static_cast<std::uint32_t>(counter >> 32),
                                         stream, 0}};
  const r123::Philox4x32::key_type k = {{key.a, key.b}};
  const auto r = r123::Philox4x32()(c, k);
  return {{r[0], r[1], r[2], r[3]}};
}

constexpr std::uint32_t kDraws = 0, kKeys = 1;

double unit_interval(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

template <class F>
Array fill(Shape shape, DType dtype, F value_at) {
  if (dtype != DType::f32 && dtype != DType::f64)
    return fill(std::move(shape), DType::f64, value_at).astype(dtype);
  Array a = Array::uninitialized(dtype, std::move(shape));
  const auto draw = [&]<class T>(T* p) {
    for (std::int64_t i = 0, n = a.size(); i < n; ++i)
      p[i] = static_cast<T>(value_at(static_cast<std::uint64_t>(i)));
  };
  if (dtype == DType::f64)
    draw(a.mutable_data<double>());
  else
    draw(a.mutable_data<float>());
  return a;
}

}  // namespace

RngKey rng_key(std::uint64_t seed) {
  return fold_in({0x243f6a88u, 0x85a308d3u}, seed);  // an arbitrary fixed root
}

RngKey fold_in(RngKey key, std::uint64_t data) {
  const RandomWords r = philox(key, data, kKeys);
  return {r.w[0], r.w[1]};
}

RngKey fold_in(RngKey key, std::string_view name) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return fold_in(key, hash);
}

Array key_array(RngKey key) {
  return Array::from<std::int32_t>(
      {2}, {std::bit_cast<std::int32_t>(key.a), std::bit_cast<std::int32_t>(key.b)});
}

RngKey key_from_array(const Array& key) {
  BT_REQUIRE(key.dtype() == DType::i32 && key.shape() == Shape{2},
             fmt::format("random key must be i32[2], got {}{}", to_string(key.dtype()),
                         to_string(key.shape())));
  const Array packed = key.contiguous();
  const auto* p = packed.data<std::int32_t>();
  return {std::bit_cast<std::uint32_t>(p[0]), std::bit_cast<std::uint32_t>(p[1])};
}

RandomWords random_words(RngKey key, std::uint64_t counter) {
  return philox(key, counter, kDraws);
}

double uniform_at(RngKey key, std::uint64_t counter) {
  const RandomWords r = random_words(key, counter);
  return unit_interval(r.w[0], r.w[1]);
}

double normal_at(RngKey key, std::uint64_t counter) {
  const RandomWords r = random_words(key, counter);
  const double radius = std::sqrt(-2.0 * std::log1p(-unit_interval(r.w[0], r.w[1])));
  return radius * std::cos(2.0 * std::numbers::pi * unit_interval(r.w[2], r.w[3]));
}

Array random_uniform(RngKey key, Shape shape, double low, double high, DType dtype) {
  return fill(std::move(shape), dtype, [=](std::uint64_t i) {
    const double v = low + (high - low) * uniform_at(key, i);
    // Rounding to float must not reach the open end of the interval.
    const bool rounds_up =
        dtype == DType::f32 && static_cast<float>(v) >= high && low < high;
    return rounds_up ? std::nextafter(static_cast<float>(high), static_cast<float>(low))
                     : v;
  });
}

Array random_normal(RngKey key, Shape shape, DType dtype) {
  return fill(std::move(shape), dtype,
              [=](std::uint64_t i) { return normal_at(key, i); });
}

}  // namespace braintrace
