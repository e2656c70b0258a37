// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/reduce_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"

namespace reduce_kernel_test {

using namespace braintrace;

namespace {

Array data(DType dtype, const Shape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-3, 3);
  std::vector<double> v(static_cast<std::size_t>(num_elements(shape)));
  for (double& x : v) x = uniform(random);
  return array(shape, v, DType::f64).astype(dtype);
}

Array kernel(ReduceKind kind, const Array& x, const Ints& axes, int threads = 1) {
  Shape kept;
  for (std::int64_t a = 0; a < x.rank(); ++a)
    if (std::find(axes.begin(), axes.end(), a) == axes.end())
      kept.push_back(x.shape()[static_cast<std::size_t>(a)]);
  Array y(x.dtype(), kept);
  ThreadPool pool(threads);
  ReduceKernel(kind, x.dtype(), x.shape(), axes).run(x.raw(), y.mutable_raw(), pool);
  return y;
}

Array judge(ReduceKind kind, const Array& x, const Ints& axes) {
  if (axes.empty()) return x;
  switch (kind) {
    case ReduceKind::sum:
      return sum(x, {.axes = axes}).array();
    case ReduceKind::prod:
      return prod(x, {.axes = axes}).array();
    case ReduceKind::max:
      return max(x, {.axes = axes}).array();
    default:
      return min(x, {.axes = axes}).array();
  }
}

constexpr ReduceKind kKinds[] = {ReduceKind::sum, ReduceKind::prod, ReduceKind::max,
                                 ReduceKind::min};

}  // namespace

TEST_CASE("reductions over every set of axes agree with their ops") {
  const Shape shape = {3, 4, 1, 5, 2, 7};
  for (std::size_t mask = 0; mask < 64; ++mask) {
    Ints axes;
    for (std::int64_t a = 0; a < 6; ++a)
      if ((mask >> a & 1) != 0) axes.push_back(a);
    for (ReduceKind kind : kKinds)
      for (DType dtype : {DType::i32, DType::f32, DType::f64}) {
        const Array x = data(dtype, shape);
        const Array got = kernel(kind, x, axes), want = judge(kind, x, axes);
        INFO("axes " << to_string(axes) << ", kind " << int(kind));
        const bool exact =
            kind == ReduceKind::max || kind == ReduceKind::min || dtype == DType::i32;
        if (exact)
          CHECK(got == want);
        else
          testing::check_close("kernel", got, want,
                               dtype == DType::f64 ? tol::f64 : tol::f32);
      }
  }
}

TEST_CASE("tall matrices are reduced piece by piece") {
  for (const std::int64_t columns : {3, 37, 512, 513})
    for (ReduceKind kind : kKinds)
      for (DType dtype : {DType::i32, DType::f32, DType::f64}) {
        CAPTURE(columns);
        Array x = data(dtype, {200000 / columns, columns});
        if (kind == ReduceKind::prod)
          x = (full({1}, 1, dtype) + Value(x) * full({1}, 1e-4, dtype)).array();
        const Array want = judge(kind, x, {0});
        for (const int threads : {1, 2, 3}) {
          const Array got = kernel(kind, x, {0}, threads);
          if (dtype == DType::f32)
            testing::check_close("kernel", got, want, tol::f32);
          else
            testing::check_close("kernel", got, want, dtype == DType::f64 ? 1e-9 : 0);
        }
      }
}

TEST_CASE("nothing sums to 0 and multiplies to 1") {
  for (const auto& [kind, want] :
       {std::pair{ReduceKind::sum, 0.0}, std::pair{ReduceKind::prod, 1.0},
        std::pair{ReduceKind::max, -std::numeric_limits<double>::infinity()}})
    CHECK(kernel(kind, Array(DType::f64, {2, 0, 3}), {1}) ==
          full({2, 3}, want, DType::f64));
  CHECK(kernel(ReduceKind::sum, Array(DType::f64, {0, 3}), {1}).size() == 0);
}

TEST_CASE("a NaN wins over every extreme and the first of equal zeros stays") {
  const double nan = std::nan("");
  for (ReduceKind kind : {ReduceKind::max, ReduceKind::min})
    for (const Array& x :
         {array({1, nan, 3}, DType::f64), array({nan, 1}, DType::f64),
          array({0.0, -0.0}, DType::f64), array({-0.0, 0.0}, DType::f64)})
      CHECK(kernel(kind, x, {0}) == judge(kind, x, {0}));
}

TEST_CASE("long sums of f32 do not drift") {
  const Array x = full({1 << 20}, 0.1);
  CHECK(kernel(ReduceKind::sum, x, {0}) == judge(ReduceKind::sum, x, {0}));
}

TEST_CASE("reductions have the same bits at any number of threads") {
  for (const auto& [shape, axes] :
       {std::pair{Shape{600000}, Ints{0}}, std::pair{Shape{3000, 300}, Ints{0}},
        std::pair{Shape{3000, 300}, Ints{1}}, std::pair{Shape{60, 70, 80}, Ints{0, 2}}}) {
    const Array x = data(DType::f32, shape);
    const Array one = kernel(ReduceKind::sum, x, axes, 1);
    CHECK(kernel(ReduceKind::sum, x, axes, 2) == one);
    CHECK(kernel(ReduceKind::sum, x, axes, 4) == one);
  }
}

}  // namespace reduce_kernel_test
