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
void fill_with(Array& a, F value_at) {
  const auto draw = [&]<class T>(T* p) {
    for (std::int64_t i = 0, n = a.size(); i < n; ++i)
      p[i] = static_cast<T>(value_at(static_cast<std::uint64_t>(i)));
  };
  if (a.dtype() == DType::f64)
    draw(a.mutable_data<double>());
  else
    draw(a.mutable_data<float>());
}

// Other types than f32 and f64 are rounded from f64.
template <class F>
Array filled(Shape shape, DType dtype, F fill_it) {
  Array a = Array::uninitialized(is_float(dtype) ? dtype : DType::f64, std::move(shape));
  fill_it(a);
  return a.dtype() == dtype ? a : a.astype(dtype);
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

void write_key(RngKey key, Array& out) {
  auto* p = out.mutable_data<std::int32_t>();
  p[0] = std::bit_cast<std::int32_t>(key.a);
  p[1] = std::bit_cast<std::int32_t>(key.b);
}

Array key_array(RngKey key) {
  Array a = Array::uninitialized(DType::i32, {2});
  write_key(key, a);
  return a;
}

RngKey key_from_array(const Array& key) {
  BT_REQUIRE(key.dtype() == DType::i32 && key.rank() == 1 && key.size() == 2,
             fmt::format("random key must be i32[2], got {}{}", to_string(key.dtype()),
                         to_string(key.shape())));
  if (!key.is_contiguous()) return key_from_array(key.contiguous());
  const auto* p = key.data<std::int32_t>();
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

void fill_uniform(RngKey key, double low, double high, Array& out) {
  const bool narrow = out.dtype() == DType::f32;
  fill_with(out, [=](std::uint64_t i) {
    const double v = low + (high - low) * uniform_at(key, i);
    // Rounding to float must not reach the open end of the interval.
    const bool rounds_up = narrow && static_cast<float>(v) >= high && low < high;
    return rounds_up ? std::nextafter(static_cast<float>(high), static_cast<float>(low))
                     : v;
  });
}

void fill_normal(RngKey key, Array& out) {
  fill_with(out, [=](std::uint64_t i) { return normal_at(key, i); });
}

Array random_uniform(RngKey key, Shape shape, double low, double high, DType dtype) {
  return filled(std::move(shape), dtype,
                [=](Array& a) { fill_uniform(key, low, high, a); });
}

Array random_normal(RngKey key, Shape shape, DType dtype) {
  return filled(std::move(shape), dtype, [=](Array& a) { fill_normal(key, a); });
}

}  // namespace braintrace
