// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/spread_product_impl.h"

namespace braintrace {
namespace {

// One operand where its axes go; size 1 for all others. `first_free`: the axis of the
// product that its free ones start at.
Value placed(const Value& v, const Ints& batch, const Ints& contract,
             std::int64_t first_free, const SpreadAxes& to) {
  const auto at = [](const Ints& list, std::int64_t a) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), a) -
                                    list.begin());
  };
  Ints target;  // by axis of v
  auto free = static_cast<std::size_t>(first_free);
  for (std::int64_t a = 0; a < v.rank(); ++a) {
    if (const std::size_t c = at(contract, a); c < contract.size())
      target.push_back(to.contracted[c]);
    else if (const std::size_t b = at(batch, a); b < batch.size())
      target.push_back(to.axes[b]);
    else
      target.push_back(to.axes[free++]);
  }
  return with_axes_at(v, target, to.rank);
}

}  // namespace

Value with_axes_at(const Value& v, const Ints& target, std::int64_t rank) {
  Ints order = iota_ints(v.rank());
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return target[static_cast<std::size_t>(a)] < target[static_cast<std::size_t>(b)];
  });
  Shape shape(static_cast<std::size_t>(rank), 1);
  for (std::int64_t a = 0; a < v.rank(); ++a)
    if (const std::int64_t to = target[static_cast<std::size_t>(a)]; to >= 0)
      shape[static_cast<std::size_t>(to)] = v.dim(a);
  return reshape(transpose(v, order), shape);
}

Value spread_product(const lowering::Gemm& gemm, const Value& l, const Value& r,
                     const SpreadAxes& to) {
  const auto num_batch = static_cast<std::int64_t>(gemm.lhs_batch.size());
  const std::int64_t num_left =
      l.rank() - num_batch - static_cast<std::int64_t>(gemm.lhs_contract.size());
  return placed(l, gemm.lhs_batch, gemm.lhs_contract, num_batch, to) *
         placed(r, gemm.rhs_batch, gemm.rhs_contract, num_batch + num_left, to);
}

}  // namespace braintrace
