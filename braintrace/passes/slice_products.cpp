// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/slice_products.h"

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

// What a slice takes of each axis of a product, handed to an operand of it.
struct Taken {
  const Ints &start, &step;
  const Shape& size;

  // `batch`: axes that come first in the product; `at`: where the free ones start.
  Value of(const Value& v, const Ints& batch, const Ints& contract,
           std::size_t at) const {
    Ints from(v.shape().size(), 0), by(v.shape().size(), 1);
    Shape count = v.shape();
    const auto take = [&](std::size_t axis, std::size_t product_axis) {
      from[axis] = start[product_axis];
      by[axis] = step[product_axis];
      count[axis] = size[product_axis];
    };
    for (std::size_t b = 0; b < batch.size(); ++b)
      take(static_cast<std::size_t>(batch[b]), b);
    for (std::int64_t a = 0; a < v.rank(); ++a)
      if (!contains(batch, a) && !contains(contract, a))
        take(static_cast<std::size_t>(a), at++);
    return count == v.shape() ? v : slice(v, from, count, by);
  }
};

}  // namespace

Graph slice_products(const Graph& g) {
  const LoweredGraph lowered(g);
  RewriteRules rules{.sub_graph = slice_products};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    const auto* part = std::get_if<lowering::Slice>(&lowered.lowering(n));
    const Node* product = part ? lowered.producer(n.inputs[0]) : nullptr;
    const lowering::Gemm* m = product ? plain_gemm(lowered, *product) : nullptr;
    if (!m || lowered.uses(n.inputs[0]) != 1) return std::nullopt;
    const Taken taken{part->start, part->step, g.type(n.outputs[0]).shape};
    const Value &l = env[product->inputs[0].index], &r = env[product->inputs[1].index];
    const std::size_t num_batch = m->lhs_batch.size();
    const std::size_t num_left = l.shape().size() - num_batch - m->lhs_contract.size();
    return {
        {dot_general(taken.of(l, m->lhs_batch, m->lhs_contract, num_batch),
                     taken.of(r, m->rhs_batch, m->rhs_contract, num_batch + num_left),
                     {m->lhs_contract, m->rhs_contract, m->lhs_batch, m->rhs_batch})}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
