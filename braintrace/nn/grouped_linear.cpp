// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/grouped_linear.h"

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::vector<LeafSpec> leaves(std::int64_t groups, std::int64_t in, std::int64_t out,
                             const GroupedLinearOptions& o) {
  internal::positive("GroupedLinear", "num_groups", groups);
  internal::positive("GroupedLinear", "in_features", in);
  internal::positive("GroupedLinear", "out_features", out);
  std::vector<LeafSpec> specs = {{"weight", {groups, in, out}, o.w_init}};
  if (o.b_init) specs.push_back({"bias", {groups, out}, o.b_init});
  return specs;
}

}  // namespace

GroupedLinear::GroupedLinear(std::int64_t num_groups, std::int64_t in_features,
                             std::int64_t out_features, GroupedLinearOptions options)
    : weight(leaves(num_groups, in_features, out_features, options)),
      num_groups_(num_groups),
      in_features_(in_features),
      has_bias_(options.b_init != nullptr) {
  add("weight", weight);
}

Value GroupedLinear::update(Value x) {
  const bool fits =
      x.rank() >= 2 && x.dim(-2) == num_groups_ && x.dim(-1) == in_features_;
  BT_REQUIRE(fits, fmt::format("GroupedLinear: x must end with [{},{}], got {}",
                               num_groups_, in_features_, to_string(x.shape())));
  const Tangent bias = has_bias_ ? Tangent(weight.value("bias")) : std::nullopt;
  return grouped_matmul(x, weight.value("weight"), bias);
}

}  // namespace braintrace::nn
