// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums, products and extremes over axes of a packed array.
#include <cstdint>
#include <vector>

#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"
#include "braintrace/ir/lowering.h"

namespace braintrace {

class ThreadPool;

// The order in which elements meet depends on the shape alone: bit-identical at any
// number of threads. Sums and products of f32 run in double. A NaN wins over every
// extreme; of equal ones (0 and -0) the first stays. i32 wraps around.
class ReduceKernel {
 public:
  // `axes` sorted and distinct; f32, f64 or i32.
  ReduceKernel(ReduceKind kind, DType dtype, const Shape& shape, const Ints& axes);

  // x has the shape, y the kept axes, both packed. Does not allocate.
  void run(const void* x, void* y, ThreadPool& pool) const;

 private:
  struct Axis {
    std::int64_t size, stride;
  };
  template <class T, class Op>
  struct Runner;

  ReduceKind kind_;
  DType dtype_;
  // Adjacent axes of one kind are merged; a kept one comes first, a reduced one last.
  std::vector<Axis> kept_, reduced_;
  std::int64_t outputs_ = 1, inputs_ = 1;
};

}  // namespace braintrace
