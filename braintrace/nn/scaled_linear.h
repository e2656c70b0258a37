// SPDX-License-Identifier: Apache-2.0
#pragma once
// A dense layer with weight standardisation.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

struct ScaledWSLinearOptions {
  Initializer w_init = init::kaiming_normal();
  Initializer b_init = init::zero();  // empty: no bias
  std::optional<Array> w_mask = {};   // broadcast to the weight
  bool ws_gain = true;                // learn one factor per output
  double eps = 1e-4;
};

// Per output column, mean m and population variance v over all other axes, n of them:
// (W - m) / sqrt(max(v n, eps)).
Value standardize_weight(const Value& w, double eps = 1e-4);

// y = (x (standardize_weight(W) * mask)) gain + b. Only W is an operand of the traced op.
// Parameter 'weight' with leaves weight [in, out], bias [out], gain [1, out].
class ScaledWSLinear : public Module {
 public:
  ScaledWSLinear(std::int64_t in_size, std::int64_t out_size,
                 ScaledWSLinearOptions options = {});
  Value update(Value x) override;

  ParamState weight;

 private:
  std::int64_t in_size_, out_size_;
  ScaledWSLinearOptions options_;
};

}  // namespace braintrace::nn
