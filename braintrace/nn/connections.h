// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plain (untraced) connections between populations: exact gradients of the current step,
// no eligibility trace.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

struct AllToAllOptions {
  Initializer w_init = init::kaiming_normal();
  Initializer b_init = {};     // empty: no bias
  bool scalar_weight = false;  // one weight for all pairs
  bool include_self = true;    // false: the diagonal is held at 0; needs in == out
};

// y = x W + b, or y[o] = w sum_i x[i] + b with one weight.
// Parameter 'weight' with leaves weight [in, out] (or []) and bias [out].
class AllToAll : public Module {
 public:
  AllToAll(std::int64_t in_size, std::int64_t out_size, AllToAllOptions options = {});
  Value update(Value x) override;

  ParamState weight;

 private:
  Value matrix_product(const Value& x);
  Value scalar_product(const Value& x);

  std::int64_t in_size_, out_size_;
  AllToAllOptions options_;
};

struct OneToOneOptions {
  Initializer w_init = init::normal();
  Initializer b_init = {};  // empty: no bias
};

// y = x * w + b, entry by entry. Parameter 'weight' with leaves weight and bias [size].
class OneToOne : public Module {
 public:
  explicit OneToOne(std::int64_t size, OneToOneOptions options = {});
  Value update(Value x) override;

  ParamState weight;

 private:
  std::int64_t size_;
  bool has_bias_;
};

}  // namespace braintrace::nn
