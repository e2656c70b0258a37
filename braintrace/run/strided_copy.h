// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between two strided layouts of one shape.
#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"

namespace braintrace {

class ThreadPool;

// Element sizes 1, 2, 4, 8. Source and target are the same elements, or do not overlap.
class StridedCopy {
 public:
  StridedCopy(std::size_t element_bytes, const Shape& shape, const Ints& from_strides,
              const Ints& to_strides);
  // Large ones on all threads. Does not allocate.
  void run(const void* from, void* to, ThreadPool& pool) const;

 private:
  struct Axis {
    std::int64_t size, from, to;  // strides in bytes
  };
  void rows(const std::byte* from, std::byte* to, std::size_t axis) const;
  void row(const std::byte* from, std::byte* to) const;
  void turn(const std::byte* from, std::byte* to, std::int64_t lines) const;
  void turn_strips(const std::byte* from, std::byte* to, const Axis& neighbours) const;

  std::size_t bytes_;
  bool empty_ = false;
  bool turns_ = false;   // the source lies along the last outer axis, the target along
                         // the inner one
  bool strips_ = false;  // rows that are turned share lines of the target with neighbours
  std::vector<Axis> outer_;
  Axis inner_{1, 0, 0};
};

}  // namespace braintrace
