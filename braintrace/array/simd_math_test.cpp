// SPDX-License-Identifier: Apache-2.0
// Every function against long double, on every instruction set this machine has.
#include "braintrace/array/simd_math.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/testing/every_target.h"

namespace simd_math_test {

using namespace braintrace;
using braintrace::testing::on_every_target;

namespace {

constexpr double kMostUlps = 4;

struct Function {
  const char* name;
  SimdFn fn;
  long double (*truth)(long double);
};

long double true_sigmoid(long double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
long double true_softplus(long double x) {
  return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x)));
}

const Function kFunctions[] = {
    {"exp", SimdFn::exp, [](long double x) { return std::exp(x); }},
    {"expm1", SimdFn::expm1, [](long double x) { return std::expm1(x); }},
    {"log", SimdFn::log, [](long double x) { return std::log(x); }},
    {"log1p", SimdFn::log1p, [](long double x) { return std::log1p(x); }},
    {"tanh", SimdFn::tanh, [](long double x) { return std::tanh(x); }},
    {"sigmoid", SimdFn::sigmoid, true_sigmoid},
    {"softplus", SimdFn::softplus, true_softplus},
    {"erf", SimdFn::erf, [](long double x) { return std::erf(x); }},
    {"sin", SimdFn::sin, [](long double x) { return std::sin(x); }},
    {"cos", SimdFn::cos, [](long double x) { return std::cos(x); }},
};

// Distance in units of the last place of the truth; denormals count like the smallest
// normal number.
template <class T>
double ulps(T got, long double truth) {
  const T want = static_cast<T>(truth);
  if (std::isnan(got) && std::isnan(want)) return 0;
  if (got == want) return std::signbit(got) == std::signbit(want) || got != 0 ? 0 : 1e9;
  if (!std::isfinite(got) || !std::isfinite(want)) return 1e9;
  using Limits = std::numeric_limits<T>;
  const long double size =
      std::max(std::abs(truth), static_cast<long double>(Limits::min()));
  return static_cast<double>(std::abs(got - truth) /
                             std::ldexp(1.0L, std::ilogb(size) + 1 - Limits::digits));
}

template <class T>
std::vector<T> points() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = {T(0),
                      -T(0),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::max(),
                      Limits::lowest(),
                      Limits::min(),
                      -Limits::min(),
                      Limits::denorm_min(),
                      -Limits::denorm_min(),
                      T(1),
                      T(-1),
                      T(88.72283),
                      T(88.7229),
                      T(-87.4),
                      T(-103.97),
                      T(-104.1),
                      T(709.78),
                      T(709.79),
                      T(-745.1),
                      T(-745.2),
                      T(200),
                      T(1000),
                      T(0.55),
                      T(0.93),
                      T(4),
                      T(20),
                      T(30000),
                      T(30001),
                      T(1e6)};
  std::mt19937_64 random(5);
  const auto uniform = [&](double a, double b) {
    return static_cast<T>(std::uniform_real_distribution<double>(a, b)(random));
  };
  const double span = sizeof(T) == 4 ? 38 : 300;
  for (int i = 0; i < 1000000 / 8; ++i) {
    for (double r : {1.0, 10.0, 110.0, 800.0, 30000.0}) x.push_back(uniform(-r, r));
    x.push_back(static_cast<T>(std::pow(10.0, uniform(-span, span))));
    x.push_back(-x.back());
    x.push_back(1 + uniform(-1e-3, 1e-3));
  }
  return x;
}

template <class T>
void check_all(const std::vector<T>& x, const std::string& where) {
  std::vector<T> y(x.size());
  for (const Function& f : kFunctions) {
    simd_math(f.fn, x.data(), y.data(), x.size());
    double worst = 0;
    T at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double u = ulps(y[i], f.truth(static_cast<long double>(x[i])));
      if (u > worst) worst = u, at = x[i];
    }
    INFO(where << ": " << f.name << " at " << at);
    CHECK(worst <= kMostUlps);
  }
}

}  // namespace

TEST_CASE("f32 functions are within 4 ulp and libm at the edges") {
  const auto x = points<float>();
  on_every_target([&](const std::string& target) { check_all(x, target); });
}

TEST_CASE("f64 functions are within 4 ulp and libm at the edges") {
  const auto x = points<double>();
  on_every_target([&](const std::string& target) { check_all(x, target); });
}

TEST_CASE("sine and cosine stay within one") {
  const auto x = points<float>();
  std::vector<float> y(x.size());
  for (SimdFn f : {SimdFn::sin, SimdFn::cos}) {
    simd_math(f, x.data(), y.data(), x.size());
    bool within = true;
    for (float v : y) within = within && !(std::abs(v) > 1);
    CHECK(within);
  }
}

TEST_CASE("a result does not depend on the place of its element") {
  const std::vector<float> x = {-3.3F, 0.4F, 55.5F, 1e5F, -0.7F, 2, 9, 11, 0.01F};
  for (const Function& f : kFunctions) {
    for (std::size_t n = 1; n <= x.size(); ++n) {
      std::vector<float> all(n), last(1);
      simd_math(f.fn, x.data(), all.data(), n);
      simd_math(f.fn, x.data() + n - 1, last.data(), 1);
      CHECK(std::memcmp(&all[n - 1], last.data(), sizeof(float)) == 0);
    }
  }
}

TEST_CASE("powers are within 4 ulp and libm at the edges") {
  const float special[] = {0,  -0.0F,    1,         -1,  2,      -2,    0.5F, 3,
                           -3, INFINITY, -INFINITY, NAN, 1e-40F, 1e38F, -2.5F};
  std::vector<float> a, b;
  for (float u : special)
    for (float v : special) a.push_back(u), b.push_back(v);
  std::mt19937 random(9);
  std::uniform_real_distribution<float> base(0, 50), power(-20, 20);
  for (int i = 0; i < 200000; ++i) a.push_back(base(random)), b.push_back(power(random));
  on_every_target([&](const std::string& target) {
    std::vector<float> y(a.size());
    simd_pow(a.data(), b.data(), y.data(), a.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      worst = std::max(worst, ulps(y[i], std::pow(static_cast<long double>(a[i]),
                                                  static_cast<long double>(b[i]))));
    INFO(target);
    CHECK(worst <= kMostUlps);
  });
  const double x[] = {2, -8}, e[] = {10, 3};
  double y[2];
  simd_pow(x, e, y, 2);
  CHECK(y[0] == 1024);
  CHECK(y[1] == -512);
}

}  // namespace simd_math_test
