// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution x [..., *spatial, c] * kernel [*window, c/groups, o] -> y [..., *out, o].
#include <memory>

#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"
#include "braintrace/ir/lowering.h"

namespace braintrace {

class ThreadPool;

struct ConvSpec {
  DType dtype = DType::f32;  // f32 or f64
  Shape x, kernel, y;        // leading axes of x and y count as one batch
  ConvGeometry geometry;
};

class ConvKernel {
 public:
  explicit ConvKernel(const ConvSpec& spec);
  ~ConvKernel();
  ConvKernel(ConvKernel&&) noexcept;
  ConvKernel& operator=(ConvKernel&&) noexcept;

  // Packed arrays; `bias` has o elements or is null. Bit-identical at any number of
  // threads. Does not allocate.
  void run(const void* x, const void* kernel, const void* bias, void* y,
           ThreadPool& pool) const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

}  // namespace braintrace
