// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, sparse connections and convolution against their ops.
#include <algorithm>
#include <cstring>
#include <random>

#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"
#include "braintrace/run/conv_kernel.h"
#include "braintrace/run/gather_kernel.h"
#include "braintrace/run/sparse_kernel.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/every_target.h"
#include "braintrace/testing/tolerance.h"

namespace index_kernels_test {

using namespace braintrace;

namespace {

Array data(DType dtype, const Shape& shape, std::uint64_t seed = 1) {
  return testing::uniform(shape, -3, 3, seed).astype(dtype);
}

double tolerance(DType d) { return d == DType::f64 ? tol::f64 : tol::f32; }

Array conv_kernel(const Array& x, const Array& kernel, const Array* bias,
                  const ConvGeometry& g, const Array& like, int threads) {
  Array y(like.dtype(), like.shape());
  ThreadPool pool(threads);
  ConvKernel({x.dtype(), x.shape(), kernel.shape(), y.shape(), g})
      .run(x.raw(), kernel.raw(), bias == nullptr ? nullptr : bias->raw(),
           y.mutable_raw(), pool);
  return y;
}

struct ConvCase {
  Shape x, kernel;
  ConvGeometry g;
};

// Axes of images with channels in front of positions.
Ints channels_first(const Shape& shape, const ConvGeometry& g) {
  Ints order = iota_ints(std::ssize(shape));
  const auto spatial = static_cast<std::ptrdiff_t>(g.strides.size());
  std::rotate(order.end() - 1 - spatial, order.end() - 1, order.end());
  return order;
}
ConvPlaces places_channels_first(const Shape& shape, const ConvGeometry& g) {
  std::int64_t positions = 1;
  for (std::size_t i = 0; i < g.strides.size(); ++i)
    positions *= shape[shape.size() - 2 - i];
  return {positions * shape.back(), 1, positions};
}

// The same with x, y or both laid out by channels; nullopt where the kernel does not
// take x like that.
std::optional<Array> conv_by_channels(const ConvCase& c, const Array& x, const Array& k,
                                      const Array* bias, const Shape& out, bool x_first,
                                      bool y_first) {
  const DType dtype = x.dtype();
  ConvSpec spec{dtype, c.x, c.kernel, out, c.g};
  if (x_first) spec.x_at = places_channels_first(c.x, c.g);
  if (y_first) spec.y_at = places_channels_first(out, c.g);
  if (!ConvKernel::takes(spec)) return std::nullopt;
  const Array given = x_first ? x.transposed(channels_first(c.x, c.g)).contiguous() : x;
  const Ints order = channels_first(out, c.g);
  Shape stored;
  for (std::int64_t a : y_first ? order : iota_ints(std::ssize(out)))
    stored.push_back(out[static_cast<std::size_t>(a)]);
  Array y(dtype, stored);
  ThreadPool pool(2);
  ConvKernel(spec).run(given.raw(), k.raw(), bias == nullptr ? nullptr : bias->raw(),
                       y.mutable_raw(), pool);
  return y_first ? y.transposed(inverse(order)).contiguous() : y;
}

}  // namespace

TEST_CASE("gather picks whole slices of any type") {
  const Array index = Array::from<std::int32_t>({5}, {3, 0, 0, 2, 3});
  for (DType dtype : {DType::boolean, DType::i32, DType::bf16, DType::f32, DType::f64})
    for (int threads : {1, 2}) {
      const Array x = data(dtype, {2, 4, 3});
      Array y(dtype, {2, 5, 3});
      ThreadPool pool(threads);
      gather({dtype, 2, 4, 5, 3}, x.raw(), index.data<std::int32_t>(), y.mutable_raw(),
             pool);
      CHECK(y == take(x, index, 1).array());
    }
}

TEST_CASE("scatter_add adds updates in their order") {
  const Array index = Array::from<std::int32_t>({5}, {3, 0, 0, 2, 3});
  for (DType dtype : {DType::i32, DType::f32, DType::f64}) {
    const Array x = data(dtype, {2, 4, 3}), u = data(dtype, {2, 5, 3}, 2);
    Array y(dtype, {2, 4, 3});
    std::memcpy(y.mutable_raw(), x.raw(), x.num_bytes());
    ThreadPool pool(2);
    scatter_add({dtype, 2, 4, 5, 3}, index.data<std::int32_t>(), u.raw(), y.mutable_raw(),
                pool);
    CHECK(y == scatter_add(x, index, u, 1).array());
  }
}

TEST_CASE("an index outside the axis is refused before anything is written") {
  ThreadPool pool;
  Array y = full({3}, 7);
  const std::int32_t bad[] = {0, 3};
  const float u[] = {1, 1};
  CHECK_THROWS_WITH_AS(
      scatter_add({DType::f32, 1, 3, 2, 1}, bad, u, y.mutable_raw(), pool),
      "scatter_add: index 3 is outside [0, 3)", UserError);
  CHECK(y == full({3}, 7));
  const std::int32_t low[] = {-1};
  CHECK_THROWS_WITH_AS(
      gather({DType::f32, 1, 3, 1, 1}, y.raw(), low, y.mutable_raw(), pool),
      "gather: index -1 is outside [0, 3)", UserError);
}

TEST_CASE("sparse connections agree with their op, sorted or not") {
  std::mt19937 random(3);
  for (bool sorted : {true, false})
    for (DType dtype : {DType::f32, DType::f64})
      for (std::int64_t lead : {1, 9}) {
        Ints rows, cols;
        for (int p = 0; p < 80; ++p) {
          rows.push_back(static_cast<std::int64_t>(random() % 12));
          cols.push_back(static_cast<std::int64_t>(random() % 7));
        }
        if (sorted) std::sort(rows.begin(), rows.end());
        const Array x = data(dtype, {lead, 12}), w = data(dtype, {80}, 2);
        const Array b = data(dtype, {7}, 3);
        Array dense(DType::f64, {12, 7});
        double* d = dense.mutable_data<double>();
        for (std::size_t p = 0; p < rows.size(); ++p)
          d[rows[p] * 7 + cols[p]] += w.at(static_cast<std::int64_t>(p));
        const Array want =
            (dot(x.astype(DType::f64), dense) + b.astype(DType::f64)).array();
        Array one(dtype, {lead, 7}), two(dtype, {lead, 7});
        ThreadPool single(1), pair(2);
        const SparseKernel kernel(dtype, lead, 12, 7, rows, cols);
        kernel.run(x.raw(), w.raw(), b.raw(), one.mutable_raw(), single);
        kernel.run(x.raw(), w.raw(), b.raw(), two.mutable_raw(), pair);
        testing::check_close("kernel", one.astype(DType::f64), want, tolerance(dtype));
        CHECK(one == two);
      }
}

TEST_CASE("convolutions of every geometry agree with their op") {
  const ConvCase cases[] = {
      {{2, 9, 3}, {3, 3, 4}, {{1}, {0}, {0}, {1}, {1}, 1}},
      {{2, 9, 4}, {3, 2, 6}, {{2}, {1}, {2}, {1}, {2}, 2}},
      {{9, 4}, {3, 1, 4}, {{1}, {2}, {2}, {2}, {1}, 4}},
      {{9, 4}, {3, 4, 2}, {{1}, {-1}, {-2}, {1}, {1}, 1}},
      {{2, 3, 6, 7, 2}, {3, 2, 2, 5}, {{1, 2}, {1, 0}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {{1, 20, 21, 3}, {5, 5, 3, 17}, {{1, 1}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, 1}},
      {{1, 4, 5, 3, 2},
       {2, 2, 2, 2, 3},
       {{1, 1, 2}, {0, 1, 0}, {0, 0, 1}, {2, 1, 1}, {1, 2, 1}, 1}},
  };
  for (const ConvCase& c : cases)
    for (DType dtype : {DType::f32, DType::f64})
      for (bool with_bias : {false, true}) {
        const Array x = data(dtype, c.x), k = data(dtype, c.kernel, 2);
        const Array b = data(dtype, {c.kernel.back()}, 3);
        const Array want =
            (with_bias ? conv(x, k, c.g, Value(b)) : conv(x, k, c.g)).array();
        INFO(to_string(c.x) << " * " << to_string(c.kernel));
        const Array* bias = with_bias ? &b : nullptr;
        const Array got = conv_kernel(x, k, bias, c.g, want, 1);
        testing::check_close("kernel", got, want, tolerance(dtype));
        CHECK(conv_kernel(x, k, bias, c.g, want, 2) == got);
      }
}

TEST_CASE("convolutions of images laid out by channels agree with their op") {
  const ConvCase cases[] = {
      {{5, 28, 28, 1}, {3, 3, 1, 8}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {{3, 10, 10, 2}, {3, 3, 2, 11}, {{1, 1}, {1, 0}, {1, 2}, {1, 1}, {1, 1}, 1}},
      {{2, 2, 7, 33, 4}, {5, 2, 2, 6}, {{1, 1}, {2, 0}, {2, 1}, {1, 1}, {1, 1}, 2}},
      {{4, 45, 3}, {4, 3, 5}, {{1}, {0}, {3}, {1}, {1}, 1}},
      {{2, 9, 9, 3}, {3, 3, 1, 3}, {{2, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3}},
      {{2, 3, 3, 40}, {2, 2, 40, 3}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1}},
  };
  int by_planes = 0;
  for (const ConvCase& c : cases)
    for (DType dtype : {DType::f32, DType::f64})
      for (bool with_bias : {false, true})
        for (const bool x_first : {false, true})
          for (const bool y_first : {false, true}) {
            const Array x = data(dtype, c.x), k = data(dtype, c.kernel, 2);
            const Array b = data(dtype, {c.kernel.back()}, 3);
            const Array want =
                (with_bias ? conv(x, k, c.g, Value(b)) : conv(x, k, c.g)).array();
            INFO(to_string(c.x) << " * " << to_string(c.kernel));
            bool taken = false;
            testing::on_every_target([&](const std::string& target) {
              INFO(target);
              const auto got = conv_by_channels(c, x, k, with_bias ? &b : nullptr,
                                                want.shape(), x_first, y_first);
              if (got) testing::check_close("kernel", *got, want, tolerance(dtype));
              taken = got.has_value();
            });
            by_planes += taken && x_first && c.x.back() > c.g.groups;
          }
  CHECK(by_planes == 12);  // three cases that only planes take
}

// As the gradient of a kernel: both factors by planes, few results, many channels.
TEST_CASE("few results of factors by planes agree with their op") {
  const ConvCase cases[] = {
      {{1, 28, 28, 37}, {28, 28, 37, 8}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {{9, 17, 6}, {9, 16, 3, 22}, {{1, 1}, {1, 0}, {1, 4}, {1, 1}, {1, 1}, 2}},
      {{1, 20, 5}, {18, 5, 3}, {{1}, {0}, {2}, {1}, {1}, 1}},
  };
  for (const ConvCase& c : cases)
    for (DType dtype : {DType::f32, DType::f64})
      for (bool with_bias : {false, true}) {
        INFO(to_string(c.x) << " * " << to_string(c.kernel));
        const Array x = data(dtype, c.x), k = data(dtype, c.kernel, 2);
        const Array b = data(dtype, {c.kernel.back()}, 3);
        const Array x64 = x.astype(DType::f64), k64 = k.astype(DType::f64);
        const Value exact = with_bias ? conv(x64, k64, c.g, Value(b.astype(DType::f64)))
                                      : conv(x64, k64, c.g);
        const Array want = exact.array();
        // Channel, output, window.
        const std::int64_t rank = k.rank();
        Ints order = iota_ints(rank);
        std::rotate(order.begin(), order.end() - 2, order.end());
        const Array given = x.transposed(channels_first(c.x, c.g)).contiguous();
        const Array planes = k.transposed(order).contiguous();
        const std::int64_t window =
            num_elements(std::span(c.kernel).first(c.kernel.size() - 2));
        ConvSpec spec{dtype, c.x, c.kernel, want.shape(), c.g};
        spec.x_at = places_channels_first(c.x, c.g);
        spec.kernel_at = ConvKernelPlaces{1, window * c.kernel.back(), window};
        REQUIRE(ConvKernel::takes(spec));
        testing::on_every_target([&](const std::string& target) {
          INFO(target);
          Array first(dtype, want.shape());
          for (const int threads : {1, 2, 4}) {
            Array y(dtype, want.shape());
            ThreadPool pool(threads);
            ConvKernel(spec).run(given.raw(), planes.raw(), with_bias ? b.raw() : nullptr,
                                 y.mutable_raw(), pool);
            testing::check_close("kernel", y.astype(DType::f64), want,
                                 20 * tolerance(dtype));  // up to 29,000 terms
            if (threads == 1) first = y;
            CHECK(y == first);
          }
        });
      }
}

TEST_CASE("windows larger than the room of a thread are cut") {
  const ConvCase c{
      {2, 40, 41, 300}, {30, 31, 300, 2}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1}};
  const Array x = data(DType::f64, c.x), k = data(DType::f64, c.kernel, 2);
  const Array b = data(DType::f64, {2}, 3);
  const Array want = conv(x, k, c.g, Value(b)).array();
  // 279,000 terms of a size up to 9
  testing::check_close("kernel", conv_kernel(x, k, &b, c.g, want, 2), want, 1e-9);
}

}  // namespace index_kernels_test
