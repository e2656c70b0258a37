// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/dense_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/anchor.h"

namespace braintrace {
namespace {

constexpr double kFreeBytes = 1024.0 * 1024.0;  // always affordable
constexpr double kMaxElements = 1e6;

// Traces are kept per effective weight, not per parameter.
std::size_t slots_of(const Node& n, const NodeTypes& types) {
  const auto builder = Builder::create();
  std::vector<Value> in;
  for (const Type& t : types.in) in.push_back(builder->input(t));
  return num_slots(*n.op->etp, {*n.op, in, {}, n.attrs, n.loc});
}

}  // namespace

void DensePolicy::count_direct(const HiddenParamOpRelation& r,
                               const std::set<std::int64_t>& groups) {
  const Node& n = info_.program().nodes()[r.node];
  const NodeTypes types = types_of(info_.program(), n);
  const Signature sig{types.in, types.out, n.attrs};
  const std::size_t slots = slots_of(n, types);
  for (std::int64_t g : groups) {
    const auto states =
        static_cast<double>(groups_[static_cast<std::size_t>(g)].num_state());
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const Type t = n.op->etp->trace(sig, static_cast<int>(slot));
      direct_bytes_[g] +=
          static_cast<double>(t.size()) * states * static_cast<double>(size_of(t.dtype));
    }
  }
}

double DensePolicy::sensitivity_elements(const HiddenParamOpRelation& r,
                                         const std::set<std::int64_t>& groups) const {
  double weights = 0, hidden = 0;
  for (const Trainable& t : r.trainables)
    for (const WeightVar& w : t.prologue.parameters)
      weights += static_cast<double>(info_.program().type(w.id).size());
  for (std::int64_t g : groups) {
    const HiddenGroup& group = groups_[static_cast<std::size_t>(g)];
    hidden += static_cast<double>(num_elements(group.varshape()) * group.num_state());
  }
  return weights * hidden;
}

std::optional<std::string> DensePolicy::why_dense(
    const HiddenParamOpRelation& r, const std::set<std::int64_t>& groups) const {
  if (options_.weight_paths == WeightPaths::dense) return "weight_paths = dense";
  if (options_.weight_paths != WeightPaths::automatic) return std::nullopt;
  const double elements = sensitivity_elements(r, groups);
  double budget = kFreeBytes;
  for (std::int64_t g : groups)
    if (const auto it = direct_bytes_.find(g); it != direct_bytes_.end())
      budget = std::max(budget, it->second);
  const double bytes =
      elements * static_cast<double>(size_of(info_.program().type(r.y).dtype));
  if (elements > kMaxElements || bytes > budget) return std::nullopt;
  return fmt::format("its {:.0f} sensitivities are affordable", elements);
}

}  // namespace braintrace
