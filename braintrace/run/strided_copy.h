// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between two strided layouts of one shape.
#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"

namespace braintrace {

// Element sizes 1, 2, 4, 8. Source and target are the same elements, or do not overlap.
class StridedCopy {
 public:
  StridedCopy(std::size_t element_bytes, const Shape& shape, const Ints& from_strides,
              const Ints& to_strides);
  void run(const void* from, void* to) const;  // does not allocate

 private:
  struct Axis {
    std::int64_t size, from, to;  // strides in bytes
  };
  void rows(const std::byte* from, std::byte* to, std::size_t axis) const;
  void row(const std::byte* from, std::byte* to) const;
  void turn(const std::byte* from, std::byte* to) const;

  std::size_t bytes_;
  bool empty_ = false;
  bool turns_ = false;  // the source lies along the last outer axis, the target along
                        // the inner one
  std::vector<Axis> outer_;
  Axis inner_{1, 0, 0};
};

}  // namespace braintrace
