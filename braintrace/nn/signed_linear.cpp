// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/signed_linear.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

SignedWLinear::SignedWLinear(std::int64_t in_size, std::int64_t out_size,
                             SignedWLinearOptions options)
    : weight({internal::positive("SignedWLinear", "in_size", in_size),
              internal::positive("SignedWLinear", "out_size", out_size)},
             options.w_init),
      in_size_(in_size),
      sign_(std::move(options.w_sign)) {
  if (sign_)
    internal::require_broadcasts("SignedWLinear", "w_sign", sign_->shape(),
                                 {in_size, out_size});
  add("weight", weight);
}

Value SignedWLinear::update(Value x) {
  internal::require_features("SignedWLinear", x, in_size_);
  const Hook keep_sign = [this](const Value& w) {
    return sign_ ? abs(w) * astype(*sign_, w.dtype()) : abs(w);
  };
  return matmul(x, weight.value(), {}, {.weight = keep_sign});
}

}  // namespace braintrace::nn
