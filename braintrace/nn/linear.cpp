// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/linear.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::vector<LeafSpec> leaves(const Shape& in_size, const Shape& out_size,
                             const LinearOptions& options) {
  const bool paired = !in_size.empty() && in_size.size() == out_size.size() &&
                      std::equal(in_size.begin(), in_size.end() - 1, out_size.begin());
  BT_REQUIRE(paired,
             fmt::format("Linear: in_size and out_size must be equal up to their last "
                         "entry, got {} and {}",
                         to_string(in_size), to_string(out_size)));
  for (const std::int64_t n : in_size) internal::positive("Linear", "in_size", n);
  const std::int64_t in = in_size.back();
  const std::int64_t out = internal::positive("Linear", "out_size", out_size.back());
  BT_REQUIRE(options.w_init, "Linear: w_init must be given, got none");
  std::vector<LeafSpec> specs = {{"weight", {in, out}, options.w_init}};
  if (options.b_init) specs.push_back({"bias", {out}, options.b_init});
  return specs;
}

}  // namespace

Linear::Linear(std::int64_t in_size, std::int64_t out_size, LinearOptions options)
    : Linear(Shape{in_size}, Shape{out_size}, std::move(options)) {}

Linear::Linear(const Shape& in_size, const Shape& out_size, LinearOptions options)
    : weight(leaves(in_size, out_size, options)),
      in_size_(in_size),
      out_size_(out_size.back()),
      has_bias_(options.b_init != nullptr),
      mask_(std::move(options.w_mask)) {
  if (mask_)
    internal::require_broadcasts("Linear", "w_mask", mask_->shape(),
                                 {in_size.back(), out_size.back()});
  add("weight", weight);
}

Value Linear::update(Value x) {
  if (in_size_.size() == 1)
    internal::require_features("Linear", x, in_size_[0]);
  else
    internal::require_ends_with("Linear", x, in_size_);
  EtpHooks hooks;
  if (mask_)
    hooks.weight = [this](const Value& w) { return w * astype(*mask_, w.dtype()); };
  const Tangent bias = has_bias_ ? Tangent(weight.value("bias")) : std::nullopt;
  return matmul(x, weight.value("weight"), bias, hooks);
}

}  // namespace braintrace::nn
