// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/rng.h"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

namespace rng_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kDraws = 100000;
// Five standard errors of a mean of kDraws numbers with standard deviation sd.
double five_sigma(double sd) { return 5 * sd / std::sqrt(static_cast<double>(kDraws)); }

double moment(const Array& a, double centre, int power) {
  double total = 0;
  for (double v : a.to_doubles()) total += std::pow(v - centre, power);
  return total / static_cast<double>(a.size());
}

}  // namespace

TEST_CASE("the generator is Philox 4x32-10") {
  // The published vector for counter 0 and key 0.
  const RandomWords r = random_words({0, 0}, 0);
  CHECK(r.w[0] == 0x6627e8d5u);
  CHECK(r.w[1] == 0xe169c58du);
  CHECK(r.w[2] == 0xbc57ac4cu);
  CHECK(r.w[3] == 0x9b00dbd8u);
}

TEST_CASE("all 64 bits of the counter count") {
  const RngKey key = rng_key(1);
  std::set<double> seen;
  for (std::uint64_t c : {0ull, 1ull, 1ull << 31, 1ull << 32, 1ull << 63})
    seen.insert(uniform_at(key, c));
  CHECK(seen.size() == 5);
}

TEST_CASE("keys of different seeds, data and names differ") {
  const RngKey root = rng_key(7);
  CHECK(root == rng_key(7));
  CHECK(!(root == rng_key(8)));
  CHECK(!(root == rng_key(7 + (std::uint64_t{1} << 32))));
  CHECK(!(fold_in(root, std::uint64_t{0}) == root));
  CHECK(!(fold_in(root, std::uint64_t{0}) == fold_in(root, std::uint64_t{1})));
  CHECK(fold_in(root, "rnn.w") == fold_in(root, "rnn.w"));
  CHECK(!(fold_in(root, "rnn.w") == fold_in(root, "rnn.b")));
  CHECK(!(fold_in(root, "") == root));
}

TEST_CASE("folding does not reuse the words a draw shows") {
  const RngKey key = rng_key(3);
  const RandomWords drawn = random_words(key, 5);
  CHECK(!(fold_in(key, std::uint64_t{5}) == RngKey{drawn.w[0], drawn.w[1]}));
}

TEST_CASE("a key survives its array form, high bits included") {
  const RngKey key{0xfedcba98u, 0x80000000u};
  const Array a = key_array(key);
  CHECK(a.dtype() == DType::i32);
  CHECK(a.shape() == Shape{2});
  CHECK(key_from_array(a) == key);
  // Also through a view that is not packed.
  const Array wide = Array::from<std::int32_t>({2, 2}, {1, 9, 2, 9});
  CHECK(key_from_array(wide.sliced({0, 0}, {2, 1}, {1, 1}).reshaped({2})) ==
        RngKey{1, 2});
}

TEST_CASE("what is no key is refused with its type") {
  CHECK_THROWS_WITH_AS(key_from_array(array({1, 2})),
                       "random key must be i32[2], got f32[2]", UserError);
  CHECK_THROWS_AS(key_from_array(array({1, 2, 3}, DType::i32)), UserError);
}

TEST_CASE("element i of a draw is uniform_at(key, i), whatever the shape") {
  const RngKey key = rng_key(11);
  const Array flat = random_uniform(key, {12}, 0, 1, DType::f64);
  const Array block = random_uniform(key, {3, 4}, 0, 1, DType::f64);
  const Array longer = random_uniform(key, {20}, 0, 1, DType::f64);
  CHECK(block.to_doubles() == flat.to_doubles());
  for (std::int64_t i = 0; i < 12; ++i) {
    CHECK(flat.at(i) == uniform_at(key, static_cast<std::uint64_t>(i)));
    CHECK(flat.at(i) == longer.at(i));
  }
  CHECK(random_normal(key, {5}, DType::f64).at(4) == normal_at(key, 4));
}

TEST_CASE("f32 draws are the f64 draws rounded") {
  const RngKey key = rng_key(12);
  CHECK(random_uniform(key, {1000}, -2, 3, DType::f32) ==
        random_uniform(key, {1000}, -2, 3, DType::f64).astype(DType::f32));
  CHECK(random_normal(key, {1000}, DType::f32) ==
        random_normal(key, {1000}, DType::f64).astype(DType::f32));
}

TEST_CASE("uniform numbers fill [0, 1) evenly") {
  const Array u = random_uniform(rng_key(2), {kDraws}, 0, 1, DType::f64);
  for (double v : u.to_doubles()) REQUIRE((v >= 0 && v < 1));
  CHECK(std::abs(moment(u, 0, 1) - 0.5) < five_sigma(std::sqrt(1.0 / 12)));
  CHECK(std::abs(moment(u, 0.5, 2) - 1.0 / 12) < five_sigma(std::sqrt(1.0 / 180)));
}

TEST_CASE("f32 uniform numbers never reach the open end") {
  // Only the low end is a float below high, yet half of the doubles round up to high.
  const double high = std::nextafter(1.0f, 2.0f);
  const Array u = random_uniform(rng_key(2), {1000}, 1, high, DType::f32);
  for (double v : u.to_doubles()) REQUIRE(v == 1.0);
}

TEST_CASE("normal numbers have mean 0, variance 1, no skew, kurtosis 3") {
  const Array z = random_normal(rng_key(4), {kDraws}, DType::f64);
  for (double v : z.to_doubles()) REQUIRE(std::isfinite(v));
  CHECK(std::abs(moment(z, 0, 1)) < five_sigma(1));
  CHECK(std::abs(moment(z, 0, 2) - 1) < five_sigma(std::sqrt(2.0)));
  CHECK(std::abs(moment(z, 0, 3)) < five_sigma(std::sqrt(15.0)));
  CHECK(std::abs(moment(z, 0, 4) - 3) < five_sigma(std::sqrt(96.0)));
}

TEST_CASE("neighbouring draws are not correlated") {
  const Array z = random_normal(rng_key(5), {kDraws}, DType::f64);
  double total = 0;
  for (std::int64_t i = 0; i + 1 < kDraws; ++i) total += z.at(i) * z.at(i + 1);
  CHECK(std::abs(total / static_cast<double>(kDraws)) < five_sigma(1));
}

TEST_CASE("an empty draw is empty") {
  CHECK(random_normal(rng_key(1), {0, 3}, DType::f32).size() == 0);
}

}  // namespace rng_test
