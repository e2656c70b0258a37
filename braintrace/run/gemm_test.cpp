// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/run/event_gemm.h"
#include "braintrace/run/gemm_impl.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/testing/every_target.h"
#include "braintrace/testing/tolerance.h"

namespace gemm_test {

using namespace braintrace;

namespace {

template <class T>
std::vector<T> numbers(std::int64_t n, unsigned seed, double zeros = 0) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-2, 2), share(0, 1);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) {
    const double value = uniform(random);
    x = share(random) < zeros ? T(0)
                              : static_cast<T>(std::is_integral_v<T> ? 9 * value : value);
  }
  return v;
}

enum class Lies { by_row, by_column, apart };

// Strides of an r x c matrix; `apart` leaves gaps in both directions.
MatrixStrides strides(std::int64_t r, std::int64_t c, Lies how) {
  if (how == Lies::by_row) return {c, 1, r * c};
  if (how == Lies::by_column) return {1, r, r * c};
  return {2 * c + 3, 2, r * (2 * c + 3)};
}

template <class T>
struct Problem {
  GemmSpec s;
  std::vector<T> a, b, c, bias;
  Problem(GemmSpec spec, Lies la, Lies lb, Lies lc = Lies::by_row, double zeros = 0)
      : s(spec) {
    s.dtype = dtype_of<T>;
    s.a = strides(s.m, s.k, la);
    s.b = strides(s.k, s.n, lb);
    s.c = strides(s.m, s.n, lc);
    a = numbers<T>(s.a.batch * s.batch + 1, 1, zeros);
    b = numbers<T>(s.b.batch * s.batch + 1, 2);
    c = numbers<T>(s.c.batch * s.batch + 1, 3);
    bias = numbers<T>(s.n, 4);
  }
};

// The largest distance to the plain sum in double, relative to the sum of magnitudes.
template <class T>
double worst(const Problem<T>& p, const std::vector<T>& got, bool with_bias) {
  const GemmSpec& s = p.s;
  double bad = 0;
  for (std::int64_t e = 0; e < s.batch * s.m * s.n; ++e) {
    const std::int64_t l = e / (s.m * s.n), i = e / s.n % s.m, j = e % s.n;
    double sum = 0, size = 1;
    for (std::int64_t q = 0; q < s.k; ++q) {
      const double x = static_cast<double>(
          p.a[static_cast<std::size_t>(l * s.a.batch + i * s.a.row + q * s.a.col)]);
      const double y = static_cast<double>(
          p.b[static_cast<std::size_t>(l * s.b.batch + q * s.b.row + j * s.b.col)]);
      sum += x * y;
      size += std::abs(x * y);
    }
    const auto at = static_cast<std::size_t>(l * s.c.batch + i * s.c.row + j * s.c.col);
    double want = s.alpha * sum;
    if (s.beta != 0) want += s.beta * static_cast<double>(p.c[at]);
    if (with_bias) want += static_cast<double>(p.bias[static_cast<std::size_t>(j)]);
    bad = std::max(bad, std::abs(static_cast<double>(got[at]) - want) / size);
  }
  return bad;
}

template <class T>
std::vector<T> product(const Problem<T>& p, ThreadPool& pool, bool with_bias = false) {
  std::vector<T> c = p.c;
  gemm(p.s, p.a.data(), p.b.data(), c.data(), pool, with_bias ? p.bias.data() : nullptr);
  return c;
}

template <class T>
std::vector<T> packed_product(const Problem<T>& p, ThreadPool& pool) {
  std::vector<T> packed(packed_b_bytes(p.s) / sizeof(T));
  GemmSpec s = p.s;
  s.b.batch = 0;
  pack_b(s, p.b.data(), packed.data(), pool);
  std::vector<T> c = p.c;
  gemm_packed(s, p.a.data(), packed.data(), c.data(), pool);
  return c;
}

constexpr double kTolerance[] = {tol::f32, tol::f64};

struct Sizes {
  Ints m, n, k;
};
const Sizes many{
    {1, 2, 3, 4, 6, 7, 16, 37}, {1, 8, 15, 16, 33, 64, 130}, {0, 1, 5, 17, 390}};
const Sizes few{{1, 2, 7}, {1, 16, 37}, {5, 70}};

template <class T>
void check_shapes(const Sizes& sizes) {
  ThreadPool pool;
  const double tolerance = kTolerance[sizeof(T) == 8];
  const Lies all[] = {Lies::by_row, Lies::by_column, Lies::apart};
  for (std::int64_t m : sizes.m)
    for (std::int64_t n : sizes.n)
      for (std::int64_t k : sizes.k)
        for (Lies la : all)
          for (Lies lb : all) {
            const Problem<T> p({.m = m, .n = n, .k = k}, la, lb);
            const std::vector<T> got = product(p, pool);
            INFO(m << " x " << n << " x " << k << ", A " << int(la) << ", B " << int(lb));
            REQUIRE(worst(p, got, false) < tolerance);
            const std::vector<T> packed = packed_product(p, pool);
            REQUIRE(worst(p, packed, false) < tolerance);
            const bool along_k = k > 16 && ((m <= 2 && lb == Lies::by_column) || n == 1);
            if (!along_k) REQUIRE(packed == got);
          }
}

}  // namespace

TEST_CASE("f32 products of all layouts equal a plain sum, packed or not") {
  check_shapes<float>(many);
}

TEST_CASE("f64 products of all layouts equal a plain sum, packed or not") {
  check_shapes<double>(many);
}

TEST_CASE("products are right on every instruction set") {
  testing::on_every_target([](const std::string& target) {
    INFO(target);
    check_shapes<float>(few);
    check_shapes<double>(few);
  });
}

TEST_CASE("products with few columns have the bits of those computed row by row") {
  ThreadPool pool(2);
  std::vector<std::byte> scratch(kGemmScratch);
  for (std::int64_t m : {63, 64, 300, 1000})
    for (std::int64_t n : {2, 10, 12, 13})
      for (double beta : {0.0, 1.0, -0.5}) {
        const Problem<float> p({.m = m, .n = n, .k = 900, .alpha = 1.5, .beta = beta},
                               Lies::by_column, Lies::by_row);
        std::vector<float> serial = p.c;
        gemm_serial(p.s, p.a.data(), p.b.data(), serial.data(), nullptr, scratch.data());
        INFO(m << " x " << n << ", beta " << beta);
        REQUIRE(worst(p, serial, false) < tol::f32);
        REQUIRE(product(p, pool) == serial);
        const Problem<double> wide({.m = m, .n = n, .k = 30, .beta = beta},
                                   Lies::by_column, Lies::by_column);
        REQUIRE(worst(wide, product(wide, pool), false) < tol::f64);
      }
}

TEST_CASE("alpha, beta and bias enter once, also when k is cut") {
  ThreadPool pool;
  for (std::int64_t k : {3, 900})
    for (double beta : {0.0, 1.0, -0.5}) {
      const Problem<double> p({.m = 9, .n = 21, .k = k, .alpha = 1.5, .beta = beta},
                              Lies::by_row, Lies::by_row);
      CHECK(worst(p, product(p, pool, true), true) < tol::f64);
      for (std::int64_t m : {1, 2}) {  // sums along k
        const Problem<float> few({.m = m, .n = 37, .k = k, .alpha = 1.5, .beta = beta},
                                 Lies::by_row, Lies::by_column);
        CHECK(worst(few, product(few, pool, true), true) < tol::f32);
      }
    }
}

TEST_CASE("beta 0 does not read C") {
  ThreadPool pool;
  Problem<float> p({.m = 7, .n = 19, .k = 4}, Lies::by_row, Lies::by_row);
  std::fill(p.c.begin(), p.c.end(), std::nanf(""));
  CHECK(worst(p, product(p, pool), false) < tol::f32);
}

TEST_CASE("an empty sum leaves the bias") {
  ThreadPool pool;
  const Problem<float> p({.m = 2, .n = 3, .k = 0}, Lies::by_row, Lies::by_row);
  const std::vector<float> got = product(p, pool, true);
  for (std::size_t i = 0; i < 6; ++i) CHECK(got[i] == p.bias[i % 3]);
}

TEST_CASE("products without elements do nothing") {
  ThreadPool pool;
  for (const GemmSpec& s :
       {GemmSpec{.m = 0, .n = 3, .k = 2}, GemmSpec{.m = 3, .n = 0, .k = 2},
        GemmSpec{.m = 3, .n = 2, .k = 2, .batch = 0}}) {
    const Problem<float> p(s, Lies::by_row, Lies::by_row);
    CHECK(product(p, pool) == p.c);
  }
}

TEST_CASE("batches of products are separate") {
  ThreadPool pool;
  const Problem<float> p({.m = 5, .n = 12, .k = 8, .batch = 7}, Lies::by_column,
                         Lies::by_row);
  CHECK(worst(p, product(p, pool), false) < tol::f32);
}

TEST_CASE("results may have gaps between columns") {
  ThreadPool pool;
  const Problem<double> p({.m = 5, .n = 12, .k = 8}, Lies::by_row, Lies::by_row,
                          Lies::apart);
  CHECK(worst(p, product(p, pool), false) < tol::f64);
}

TEST_CASE("results that lie along their columns have the bits of those along rows") {
  ThreadPool pool(2);
  for (const double beta : {0.0, 0.5}) {
    Problem<float> p({.m = 37, .n = 41, .k = 300, .batch = 2, .beta = beta}, Lies::by_row,
                     Lies::by_row, Lies::by_column);
    Problem<float> rows({.m = 37, .n = 41, .k = 300, .batch = 2, .beta = beta},
                        Lies::by_row, Lies::by_row);
    const auto at = [](const Problem<float>& q, std::int64_t l, std::int64_t i,
                       std::int64_t j) {
      return static_cast<std::size_t>(l * q.s.c.batch + i * q.s.c.row + j * q.s.c.col);
    };
    const auto for_all = [&](const auto& f) {
      for (std::int64_t e = 0; e < 2 * 37 * 41; ++e)
        f(e / (37 * 41), e / 41 % 37, e % 41);
    };
    for_all(
        [&](auto l, auto i, auto j) { rows.c[at(rows, l, i, j)] = p.c[at(p, l, i, j)]; });
    gemm(p.s, p.a.data(), p.b.data(), p.c.data(), pool);
    gemm(rows.s, rows.a.data(), rows.b.data(), rows.c.data(), pool);
    for_all([&](auto l, auto i, auto j) {
      REQUIRE(p.c[at(p, l, i, j)] == rows.c[at(rows, l, i, j)]);
    });
  }
}

TEST_CASE("integer products wrap around") {
  ThreadPool pool;
  Problem<std::int32_t> p({.m = 3, .n = 4, .k = 5}, Lies::by_row, Lies::by_row);
  CHECK(worst(p, product(p, pool), false) == 0);
  p.a[0] = 2000000000;
  p.b[0] = 3;
  CHECK_NOTHROW(product(p, pool));
}

TEST_CASE("integers and spread results have no packed form") {
  const Problem<std::int32_t> integers({.m = 3, .n = 4, .k = 5}, Lies::by_row,
                                       Lies::by_row);
  const Problem<float> spread({.m = 3, .n = 4, .k = 5}, Lies::by_row, Lies::by_row,
                              Lies::apart);
  const Problem<float> plain({.m = 3, .n = 4, .k = 5}, Lies::by_row, Lies::by_row);
  CHECK(packed_b_bytes(integers.s) == 0);
  CHECK(packed_b_bytes(spread.s) == 0);
  CHECK(packed_b_bytes(plain.s) > 0);
}

TEST_CASE("products have the same bits at any number of threads") {
  ThreadPool one(1), two(2), four(4);
  for (const GemmSpec& s :
       {GemmSpec{.m = 500, .n = 401, .k = 700}, GemmSpec{.m = 16, .n = 1500, .k = 600},
        GemmSpec{.m = 64, .n = 64, .k = 64, .batch = 40}}) {
    const Problem<float> p(s, Lies::by_column, Lies::by_row);
    REQUIRE(gemm_ns(p.s) > kSharedWork);
    const std::vector<float> want = product(p, one);
    CHECK(product(p, two) == want);
    CHECK(product(p, four) == want);
  }
}

TEST_CASE("a row of a product does not depend on the rows beside it") {
  ThreadPool pool;
  const Problem<float> p({.m = 37, .n = 70, .k = 130}, Lies::by_row, Lies::by_row);
  const std::vector<float> all = product(p, pool);
  GemmSpec one = p.s;
  one.m = 1;
  std::vector<float> row(70);
  for (std::int64_t i = 0; i < 37; ++i) {
    gemm(one, p.a.data() + i * p.s.a.row, p.b.data(), row.data(), pool);
    CHECK(std::memcmp(row.data(), all.data() + i * 70, 70 * sizeof(float)) == 0);
  }
}

TEST_CASE("sparse left factors give the product, below and above the break-even") {
  ThreadPool one(1), two(2);
  for (const Lies how : {Lies::by_row, Lies::by_column, Lies::apart})
    for (double zeros : {0.0, 0.5, 0.9, 1.0}) {
      const Problem<double> p({.m = 83, .n = 47, .k = 170, .alpha = 2, .beta = 0.5}, how,
                              Lies::by_row, Lies::by_row, zeros);
      std::vector<double> c = p.c, d = p.c;
      gemm_events(p.s, p.a.data(), p.b.data(), c.data(), one, p.bias.data());
      gemm_events(p.s, p.a.data(), p.b.data(), d.data(), two, p.bias.data());
      CHECK(worst(p, c, true) < tol::f64);
      CHECK(c == d);
    }
}

TEST_CASE("each matrix of a batch is decided by itself") {
  ThreadPool one(1), three(3);
  for (const Lies how : {Lies::by_row, Lies::by_column}) {
    Problem<double> p({.m = 83, .n = 70, .k = 50, .batch = 9, .alpha = 2, .beta = 0.5},
                      how, Lies::by_row, Lies::by_row, 0.9);
    for (std::int64_t i = 0; i < 83 * 50; ++i)
      p.a[static_cast<std::size_t>(4 * p.s.a.batch + i)] = 0.25;  // the fifth is full
    std::vector<double> c = p.c, d = p.c;
    gemm_events(p.s, p.a.data(), p.b.data(), c.data(), one, p.bias.data());
    gemm_events(p.s, p.a.data(), p.b.data(), d.data(), three, p.bias.data());
    CHECK(worst(p, c, true) < tol::f64);
    CHECK(c == d);
  }
}

TEST_CASE("spikes give the bits of other events") {
  ThreadPool one(1), two(2);
  for (const Lies how : {Lies::by_row, Lies::by_column}) {
    Problem<float> p({.m = 40, .n = 150, .k = 300}, how, Lies::by_row, Lies::by_row, 0.9);
    for (float& a : p.a) a = a == 0 ? 0.0F : 1.0F;
    std::vector<float> c = p.c, d = p.c, doubled = p.c;
    gemm_events(p.s, p.a.data(), p.b.data(), c.data(), one);
    gemm_events(p.s, p.a.data(), p.b.data(), d.data(), two);
    CHECK(c == d);
    for (float& a : p.a) a *= 2;
    gemm_events(p.s, p.a.data(), p.b.data(), doubled.data(), one);
    for (std::size_t i = 0; i < 40 * 150; ++i) CHECK(doubled[i] == 2 * c[i]);
  }
}

TEST_CASE("tiles of the right factor change no bits, few events or many") {
  ThreadPool one(1), two(2);
  for (const double zeros : {0.1, 0.9})
    for (const std::int64_t m : {3, 120}) {
      const Problem<float> p({.m = m, .n = 300, .k = 170, .beta = 1}, Lies::by_row,
                             Lies::by_row, Lies::by_row, zeros);
      std::vector<float> c = p.c, d = p.c, tiles(tiled_b_bytes(p.s) / sizeof(float));
      tile_b(p.s, p.b.data(), tiles.data(), two);
      gemm_events(p.s, p.a.data(), p.b.data(), c.data(), one, p.bias.data());
      gemm_events_tiled(p.s, p.a.data(), tiles.data(), d.data(), two, p.bias.data());
      CHECK(c == d);
    }
}

TEST_CASE("what is no number counts as an event") {
  ThreadPool pool;
  for (const Lies how : {Lies::by_row, Lies::by_column}) {
    Problem<float> p({.m = 9, .n = 3, .k = 40}, how, Lies::by_row, Lies::by_row, 1);
    p.a[static_cast<std::size_t>(4 * p.s.a.row + 11 * p.s.a.col)] = NAN;
    std::vector<float> c = p.c;
    gemm_events(p.s, p.a.data(), p.b.data(), c.data(), pool);
    for (std::size_t i = 0; i < 27; ++i) CHECK(std::isnan(c[i]) == (i / 3 == 4));
  }
}

TEST_CASE("a long sum of events is decided part by part") {
  ThreadPool one(1), two(2);
  struct {
    GemmSpec s;
    Lies a;
    std::int64_t full;  // of k, from the beginning
  } cases[] = {{{.m = 300, .n = 70, .k = 4000, .beta = 1}, Lies::by_column, 3100},
               {{.m = 3, .n = 5, .k = 150000, .beta = 1}, Lies::by_row, 90000}};
  for (const auto& [s, lies, full] : cases) {
    Problem<double> p(s, lies, Lies::by_row, Lies::by_row, 0.95);
    for (std::int64_t q = 0; q < full; ++q)
      for (std::int64_t i = 0; i < s.m; ++i)
        p.a[static_cast<std::size_t>(i * p.s.a.row + q * p.s.a.col)] = 0.25;
    std::vector<double> c = p.c, d = p.c, e = p.c;
    gemm_events(p.s, p.a.data(), p.b.data(), c.data(), one, p.bias.data());
    gemm_events(p.s, p.a.data(), p.b.data(), d.data(), two, p.bias.data());
    gemm(p.s, p.a.data(), p.b.data(), e.data(), one, p.bias.data());
    CHECK(c == d);
    double far = 0;
    for (std::size_t i = 0; i < c.size(); ++i) far = std::max(far, std::abs(c[i] - e[i]));
    CHECK(far < static_cast<double>(s.k) * tol::f64);
  }
}

// Many rows are listed by cuts of k, few of them whole.
template <class T>
void check_kinds_of_lists(double factor) {
  ThreadPool pool;
  Problem<T> p({.m = 120, .n = 70, .k = 203, .beta = 1}, Lies::by_row, Lies::by_row,
               Lies::by_row, 0.9);
  for (T& a : p.a) a = a == 0 ? T(0) : factor == 1 ? T(1) : static_cast<T>(factor * a);
  std::vector<T> many = p.c, few = p.c;
  gemm_events(p.s, p.a.data(), p.b.data(), many.data(), pool, p.bias.data());
  GemmSpec part = p.s;
  part.m = 40;
  for (std::int64_t i = 0; i < 120; i += 40)
    gemm_events(part, p.a.data() + i * p.s.a.row, p.b.data(), few.data() + i * p.s.c.row,
                pool, p.bias.data());
  CHECK(many == few);
  CHECK(many != p.c);
}

TEST_CASE("events of whole rows give the bits of events of cuts") {
  testing::on_every_target([](const std::string& target) {
    INFO(target);
    for (const double factor : {1.0, 0.5}) {
      check_kinds_of_lists<float>(factor);
      check_kinds_of_lists<double>(factor);
    }
  });
}

TEST_CASE("few events skip infinite weights") {
  ThreadPool pool;
  Problem<float> p({.m = 2, .n = 3, .k = 40}, Lies::by_row, Lies::by_row, Lies::by_row,
                   1);
  p.b[0] = INFINITY;
  std::vector<float> c = p.c;
  gemm_events(p.s, p.a.data(), p.b.data(), c.data(), pool);
  for (std::size_t i = 0; i < 6; ++i) CHECK(c[i] == 0);
}

}  // namespace gemm_test
