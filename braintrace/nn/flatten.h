// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers that only change the shape.
#include "braintrace/model/module.h"

namespace braintrace::nn {

// Joins the axes of one sample into one, row-major. With a size, x must end with it and
// leading axes are kept; with an axis, everything from there on is joined.
class Flatten : public Module {
 public:
  explicit Flatten(std::int64_t start_axis = 0) : start_axis_(start_axis) {}
  explicit Flatten(Shape in_size);
  Value update(Value x) override;

 private:
  std::int64_t start_axis_ = 0;
  Shape in_size_;
};

// Splits the last axis into the given sizes.
class Unflatten : public Module {
 public:
  explicit Unflatten(Shape sizes);
  Value update(Value x) override;

 private:
  Shape sizes_;
};

}  // namespace braintrace::nn
