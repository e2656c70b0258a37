// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several independent dense layers side by side.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

struct GroupedLinearOptions {
  Initializer w_init = init::kaiming_normal(init::plain());
  Initializer b_init = init::zero();  // empty: no bias
};

// y[g] = x[g] W[g] + b[g]; x (..., groups, in), y (..., groups, out).
// Parameter 'weight' with leaves weight [groups, in, out] and bias [groups, out].
class GroupedLinear : public Module {
 public:
  GroupedLinear(std::int64_t num_groups, std::int64_t in_features,
                std::int64_t out_features, GroupedLinearOptions options = {});
  Value update(Value x) override;

  ParamState weight;

 private:
  std::int64_t num_groups_, in_features_;
  bool has_bias_;
};

}  // namespace braintrace::nn
