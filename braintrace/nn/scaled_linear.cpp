// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/scaled_linear.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::vector<LeafSpec> leaves(std::int64_t in, std::int64_t out,
                             const ScaledWSLinearOptions& o) {
  internal::positive("ScaledWSLinear", "in_size", in);
  internal::positive("ScaledWSLinear", "out_size", out);
  BT_REQUIRE(o.eps > 0 && std::isfinite(o.eps),
             fmt::format("ScaledWSLinear: eps must be > 0 and finite, got {}", o.eps));
  std::vector<LeafSpec> specs = {{"weight", {in, out}, o.w_init}};
  if (o.b_init) specs.push_back({"bias", {out}, o.b_init});
  if (o.ws_gain) specs.push_back({"gain", {1, out}, init::constant(1)});
  return specs;
}

}  // namespace

Value standardize_weight(const Value& w, double eps) {
  BT_REQUIRE(w.rank() >= 2, fmt::format("standardize_weight: needs rank >= 2, got {}",
                                        to_string(w.shape())));
  const ReduceOptions over_inputs{.axes = iota_ints(w.rank() - 1), .keepdims = true};
  const std::int64_t fan = num_elements(w.shape()) / std::max<std::int64_t>(w.dim(-1), 1);
  const Value centred = w - mean(w, over_inputs);
  const Value variance = mean(square(centred), over_inputs);
  return centred * rsqrt(maximum(variance * static_cast<double>(fan), eps));
}

ScaledWSLinear::ScaledWSLinear(std::int64_t in_size, std::int64_t out_size,
                               ScaledWSLinearOptions options)
    : weight(leaves(in_size, out_size, options)),
      in_size_(in_size),
      out_size_(out_size),
      options_(std::move(options)) {
  if (options_.w_mask)
    internal::require_broadcasts("ScaledWSLinear", "w_mask", options_.w_mask->shape(),
                                 {in_size, out_size});
  add("weight", weight);
}

Value ScaledWSLinear::update(Value x) {
  internal::require_features("ScaledWSLinear", x, in_size_);
  const Hook standardise = [this](const Value& w) {
    const Value s = standardize_weight(w, options_.eps);
    return options_.w_mask ? s * astype(*options_.w_mask, w.dtype()) : s;
  };
  Value y = matmul(x, weight.value("weight"), {}, {.weight = standardise});
  if (options_.ws_gain) y = y * reshape(weight.value("gain"), {out_size_});
  if (options_.b_init) y = y + weight.value("bias");
  return y;
}

}  // namespace braintrace::nn
