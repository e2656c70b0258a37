// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/thread_pool.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/run/ftz.h"

namespace thread_pool_test {

using namespace braintrace;

namespace {

// Half of the smallest normal number, 0 when denormals are flushed.
float half_of_smallest() {
  volatile float x = std::numeric_limits<float>::min();
  volatile float half = 0.5F;
  return x * half;
}

}  // namespace

TEST_CASE("every tile runs once, on workers of the pool") {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (std::int64_t count : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      std::atomic<bool> stranger{false};
      pool.for_tiles(count, [&](std::int64_t i, int worker) {
        ++seen[static_cast<std::size_t>(i)];
        if (worker < 0 || worker >= threads) stranger = true;
      });
      CHECK(!stranger);
      for (const auto& s : seen) CHECK(s == 1);
    }
  }
}

TEST_CASE("many short regions follow each other") {
  ThreadPool pool(3);
  std::vector<std::int64_t> sums(64, 0);
  for (int round = 0; round < 3000; ++round)
    pool.for_tiles(64,
                   [&](std::int64_t i, int) { sums[static_cast<std::size_t>(i)] += i; });
  for (std::size_t i = 0; i < sums.size(); ++i)
    CHECK(sums[i] == 3000 * static_cast<std::int64_t>(i));
}

TEST_CASE("an exception of a tile reaches the caller and the pool lives on") {
  ThreadPool pool(2);
  const auto failing = [](std::int64_t i, int) {
    if (i == 17) throw std::runtime_error("tile 17");
  };
  for (int round = 0; round < 20; ++round)
    CHECK_THROWS_WITH_AS(pool.for_tiles(100, failing), "tile 17", std::runtime_error);
  std::atomic<int> count{0};
  pool.for_tiles(100, [&](std::int64_t, int) { ++count; });
  CHECK(count == 100);
}

TEST_CASE("workers flush denormals and the caller keeps its mode") {
  ThreadPool pool(4);
  std::vector<float> found(4, -1.0F);
  for (int round = 0; round < 200; ++round)
    pool.for_tiles(64, [&](std::int64_t, int worker) {
      found[static_cast<std::size_t>(worker)] = half_of_smallest();
    });
  CHECK(found[0] > 0);
  for (std::size_t w = 1; w < found.size(); ++w) CHECK(found[w] <= 0);
}

TEST_CASE("an FTZ scope flushes denormals and restores the mode") {
  CHECK(half_of_smallest() > 0);
  {
    const FtzScope outer;
    const FtzScope inner;
    CHECK(half_of_smallest() == 0);
  }
  CHECK(half_of_smallest() > 0);
}

TEST_CASE("scratch of workers is aligned and apart") {
  ThreadPool pool(2);
  for (int w : {0, 1}) CHECK(reinterpret_cast<std::uintptr_t>(pool.scratch(w)) % 64 == 0);
  CHECK(pool.scratch(0) != pool.scratch(1));
}

TEST_CASE("a pool has at least one thread") {
  CHECK_THROWS_WITH_AS(ThreadPool(0), "ThreadPool: threads must be 1 to 1024, got 0",
                       UserError);
}

TEST_CASE("a number of threads below 0 is refused in the name of who asks") {
  CHECK_THROWS_WITH_AS(
      make_pool(-1, "Plan"),
      "Plan: threads must be 0 (as the environment says) to 1024, got -1", UserError);
  CHECK(make_pool(0)->size() == default_threads());
}

TEST_CASE("BRAINTRACE_THREADS sets the number of threads when it is one") {
  setenv("BRAINTRACE_THREADS", "3", 1);
  CHECK(default_threads() == 3);
  setenv("BRAINTRACE_THREADS", "3x", 1);
  const int cores = default_threads();
  unsetenv("BRAINTRACE_THREADS");
  CHECK(default_threads() == cores);
  CHECK(cores >= 1);
}

TEST_CASE("a second caller is refused, and the pool goes on") {
  ThreadPool pool(2);
  const auto nested = [&](std::int64_t, int) {
    pool.for_tiles(2, [](std::int64_t, int) {});
  };
  CHECK_THROWS_WITH_AS(pool.for_tiles(2, nested),
                       "ThreadPool: two callers at once; a learner and what shares its "
                       "threads must be called one after the other",
                       UserError);
  std::atomic<int> count = 0;
  pool.for_tiles(8, [&](std::int64_t, int) { ++count; });
  CHECK(count == 8);
}

}  // namespace thread_pool_test
