// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/gradient_passes.h"

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/run/thread_pool.h"

namespace gradient_passes_test {

using namespace braintrace;

namespace {

StateDict drawn(std::uint64_t seed, std::int64_t rows) {
  return {{"w", random_normal(rng_key(seed), {rows, 70}, DType::f32)},
          {"b", random_normal(rng_key(seed + 1), {70}, DType::f32)},
          {"c", random_normal(rng_key(seed + 2), {rows}, DType::f64)}};
}

}  // namespace

TEST_CASE("gradients are added and divided alike in vectors and one by one") {
  for (const std::int64_t rows : {3, 900}) {
    GradientPasses plain(nullptr), fast(std::make_shared<ThreadPool>(2));
    StateDict a = drawn(1, rows), b = drawn(1, rows);
    for (std::uint64_t k = 2; k < 5; ++k) {
      plain.add(a, drawn(10 * k, rows));
      fast.add(b, drawn(10 * k, rows));
    }
    CHECK(a == b);
    CHECK(a.at("w").at(5) ==
          doctest::Approx(drawn(1, rows).at("w").at(5) + drawn(20, rows).at("w").at(5) +
                          drawn(30, rows).at("w").at(5) + drawn(40, rows).at("w").at(5)));
    const double before = a.at("c").at(1);
    plain.divide(a, 7);
    fast.divide(b, 7);
    CHECK(a == b);
    CHECK(a.at("c").at(1) == before / 7);
  }
}

TEST_CASE("sums stay where they are and leave alone what others hold") {
  GradientPasses fast(std::make_shared<ThreadPool>(2));
  StateDict sums = drawn(1, 900);
  const void* place = sums.at("w").raw();
  fast.add(sums, drawn(5, 900));
  fast.add(sums, drawn(9, 900));
  CHECK(sums.at("w").raw() == place);
  CHECK(sums.at("w").is_unique());
  const Array held = sums.at("w");
  const double value = held.at(0);
  fast.add(sums, drawn(5, 900));
  fast.divide(sums, 2);
  CHECK(held.at(0) == value);
  CHECK(sums.at("w").at(0) != value);
}

TEST_CASE("gradients of other shapes get a pass of their own") {
  GradientPasses fast(std::make_shared<ThreadPool>(1));
  for (const std::int64_t rows : {900, 901, 900}) {
    StateDict sums = drawn(1, rows);
    fast.add(sums, drawn(1, rows));
    CHECK(sums.at("w").at(rows) == 2 * drawn(1, rows).at("w").at(rows));
  }
}

}  // namespace gradient_passes_test
