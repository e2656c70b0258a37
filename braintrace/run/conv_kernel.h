// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution x [..., *spatial, c] * kernel [*window, c/groups, o] -> y [..., *out, o].
#include <memory>
#include <optional>

#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"
#include "braintrace/ir/lowering.h"

namespace braintrace {

class ThreadPool;

// Elements from one image, position and channel to the next.
struct ConvPlaces {
  std::int64_t image, position, channel;
};
// Of a kernel, from one place of the window, channel and output to the next.
struct ConvKernelPlaces {
  std::int64_t window, channel, output;
};
struct ConvSpec {
  DType dtype = DType::f32;  // f32 or f64
  Shape x, kernel, y;        // leading axes of x and y count as one batch
  ConvGeometry geometry;
  std::optional<ConvPlaces> x_at = {}, y_at = {};  // absent: packed
  std::optional<ConvKernelPlaces> kernel_at = {};
};

class ConvKernel {
 public:
  // InternalError unless takes(spec).
  explicit ConvKernel(const ConvSpec& spec);
  // Channels of x lie together, or each is a group, or images go by planes; the kernel is
  // packed, or goes by planes and results are few: the gradient of another kernel.
  static bool takes(const ConvSpec& spec);
  ~ConvKernel();
  ConvKernel(ConvKernel&&) noexcept;
  ConvKernel& operator=(ConvKernel&&) noexcept;

  // `bias` has o elements or is null. Bit-identical at any number
  // of threads. Does not allocate. One caller at a time.
  void run(const void* x, const void* kernel, const void* bias, void* y,
           ThreadPool& pool) const;

 private:
  struct Prepared;
  void run_rows(const void* x, const void* kernel, const void* bias, void* y,
                ThreadPool& pool) const;
  void run_planes(const void* x, const void* kernel, const void* bias, void* y,
                  ThreadPool& pool) const;
  void run_sums(const void* x, const void* kernel, const void* bias, void* y,
                ThreadPool& pool) const;
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace braintrace
