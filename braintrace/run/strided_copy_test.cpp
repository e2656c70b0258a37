// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/strided_copy.h"

#include <doctest/doctest.h>

#include "braintrace/array/array.h"
#include "braintrace/array/rng.h"
#include "braintrace/run/thread_pool.h"

namespace strided_copy_test {

using namespace braintrace;

TEST_CASE("axes are copied in any order, sizes that fill no block too") {
  ThreadPool pool(2);
  const Shape shape = {3, 19, 5, 37};
  for (const DType dtype : {DType::boolean, DType::bf16, DType::f32, DType::f64})
    for (const Ints& order : {Ints{0, 1, 2, 3}, Ints{3, 2, 1, 0}, Ints{0, 3, 2, 1},
                              Ints{1, 0, 3, 2}, Ints{2, 3, 0, 1}}) {
      CAPTURE(to_string(dtype));
      CAPTURE(to_string(order));
      const Array drawn = random_normal(rng_key(1), shape, DType::f32);
      const Array from = drawn.astype(dtype), turned = from.transposed(order);
      const Array want = turned.contiguous();
      Array to(dtype, turned.shape());
      StridedCopy(size_of(dtype), turned.shape(), turned.strides(),
                  row_major_strides(turned.shape()))
          .run(from.raw(), to.mutable_raw(), pool);
      CHECK(to == want);
    }
}

// Pixels by channel become channels by pixel, as ahead of convolutions: lines far apart,
// neighbours that share them, and enough for all threads.
TEST_CASE("turned lines are copied in strips") {
  ThreadPool pool(2);
  for (const std::int64_t channels : {3, 8})
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(channels);
      const Array from =
          random_normal(rng_key(2), {13, 17, channels, 101}, DType::f32).astype(dtype);
      const Array turned = from.transposed({3, 0, 1, 2});
      Array to(dtype, turned.shape());
      StridedCopy(size_of(dtype), turned.shape(), turned.strides(),
                  row_major_strides(turned.shape()))
          .run(from.raw(), to.mutable_raw(), pool);
      CHECK(to == turned.contiguous());
    }
}

}  // namespace strided_copy_test
