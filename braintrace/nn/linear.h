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

// y = x W + b, or x (W * mask) + b. Leading axes of x are free.
// Parameter 'weight' with leaves weight [in, out] and bias [out].
class Linear : public Module {
 public:
  Linear(std::int64_t in_size, std::int64_t out_size, LinearOptions options = {});
  Value update(Value x) override;

  std::int64_t in_size() const { return in_size_; }
  std::int64_t out_size() const { return out_size_; }

  ParamState weight;

 private:
  std::int64_t in_size_, out_size_;
  bool has_bias_;
  std::optional<Array> mask_;
};

}  // namespace braintrace::nn
