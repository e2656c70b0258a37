// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/lora.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::vector<LeafSpec> leaves(std::int64_t in, std::int64_t rank, std::int64_t out,
                             const Initializer& init) {
  internal::positive("LoRA", "in_features", in);
  internal::positive("LoRA", "lora_rank", rank);
  internal::positive("LoRA", "out_features", out);
  return {{"lora_a", {in, rank}, init}, {"lora_b", {rank, out}, init}};
}

}  // namespace

LoRA::LoRA(std::int64_t in_features, std::int64_t lora_rank, std::int64_t out_features,
           LoRAOptions options)
    : weight(leaves(in_features, lora_rank, out_features, options.kernel_init)),
      in_features_(in_features),
      rank_(lora_rank),
      base_(std::move(options.base_module)) {
  add("weight", weight);
  if (base_) add("base_module", *base_);
}

// The op calls the [in, r] factor b and the [r, out] one a; the stored names are the
// other way round, as in existing models.
Value LoRA::update(Value x) {
  internal::require_features("LoRA", x, in_features_);
  const double alpha = 1.0 / static_cast<double>(rank_);
  const Value y = lora_matmul(x, weight.value("lora_a"), weight.value("lora_b"), alpha);
  return base_ ? y + (*base_)(x) : y;
}

}  // namespace braintrace::nn
