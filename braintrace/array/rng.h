// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counter-based random numbers (Philox 4x32-10). A key is i32[2]; element i of a draw is
// a pure function of (key, i), so results do not depend on threads, order or element
// type.
#include <cstdint>
#include <string_view>

#include "braintrace/array/array.h"

namespace braintrace {

struct RngKey {
  std::uint32_t a = 0, b = 0;
  friend bool operator==(RngKey, RngKey) = default;
};

RngKey rng_key(std::uint64_t seed);
RngKey fold_in(RngKey key, std::uint64_t data);     // an independent key per datum
RngKey fold_in(RngKey key, std::string_view name);  // e.g. a parameter's path
Array key_array(RngKey key);                        // i32[2]
void write_key(RngKey key, Array& out);             // the same into a contiguous one
RngKey key_from_array(const Array& key);            // UserError unless i32[2]

// Four independent words for one counter.
struct RandomWords {
  std::uint32_t w[4];
};
RandomWords random_words(RngKey key, std::uint64_t counter);

double uniform_at(RngKey key, std::uint64_t counter);  // [0, 1), 53 bits
double normal_at(RngKey key, std::uint64_t counter);   // mean 0, variance 1

Array random_uniform(RngKey key, Shape shape, double low, double high, DType dtype);
Array random_normal(RngKey key, Shape shape, DType dtype);
// The same numbers in an array that is there: f32 or f64, contiguous.
void fill_uniform(RngKey key, double low, double high, Array& out);
void fill_normal(RngKey key, Array& out);

}  // namespace braintrace
