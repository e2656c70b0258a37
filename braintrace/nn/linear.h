// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dense layer.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

struct LinearOptions {
  Initializer w_init = init::kaiming_normal();
  Initializer b_init = init::zero();  // empty: no bias
  std::optional<Array> w_mask = {};   // broadcast to the weight, multiplies it in the op
};

// y = x W + b, or x (W * mask) + b, over the last axis. Leading axes of x are free.
// Parameter 'weight' with leaves weight [in, out] and bias [out].
//
//   Linear(3, 4)             x (..., 3) -> (..., 4)
//   Linear({5, 3}, {5, 4})   x (..., 5, 3) -> (..., 5, 4): the same weight at each of 5
class Linear : public Module {
 public:
  Linear(std::int64_t in_size, std::int64_t out_size, LinearOptions options = {});
  // UserError unless the sizes differ at most in their last entry.
  Linear(const Shape& in_size, const Shape& out_size, LinearOptions options = {});
  Value update(Value x) override;

  // Of the last axis.
  std::int64_t in_size() const { return in_size_.back(); }
  std::int64_t out_size() const { return out_size_; }

  ParamState weight;

 private:
  Shape in_size_;
  std::int64_t out_size_;
  bool has_bias_;
  std::optional<Array> mask_;
};

}  // namespace braintrace::nn
