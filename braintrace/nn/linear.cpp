// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/linear.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::vector<LeafSpec> leaves(std::int64_t in, std::int64_t out,
                             const LinearOptions& options) {
  internal::positive("Linear", "in_size", in);
  internal::positive("Linear", "out_size", out);
  BT_REQUIRE(options.w_init, "Linear: w_init must be given, got none");
  std::vector<LeafSpec> specs = {{"weight", {in, out}, options.w_init}};
  if (options.b_init) specs.push_back({"bias", {out}, options.b_init});
  return specs;
}

}  // namespace

Linear::Linear(std::int64_t in_size, std::int64_t out_size, LinearOptions options)
    : weight(leaves(in_size, out_size, options)),
      in_size_(in_size),
      out_size_(out_size),
      has_bias_(options.b_init != nullptr),
      mask_(std::move(options.w_mask)) {
  if (mask_)
    internal::require_broadcasts("Linear", "w_mask", mask_->shape(), {in_size, out_size});
  add("weight", weight);
}

Value Linear::update(Value x) {
  internal::require_features("Linear", x, in_size_);
  EtpHooks hooks;
  if (mask_)
    hooks.weight = [this](const Value& w) { return w * astype(*mask_, w.dtype()); };
  const Tangent bias = has_bias_ ? Tangent(weight.value("bias")) : std::nullopt;
  return matmul(x, weight.value("weight"), bias, hooks);
}

}  // namespace braintrace::nn
