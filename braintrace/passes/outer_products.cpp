// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/outer_products.h"

#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

// A product that is one multiplication per element, and where each axis of it (batch
// axes, free ones of the first operand, free ones of the second) is read.
struct OuterProduct {
  const Node* node = nullptr;
  const lowering::Gemm* gemm = nullptr;
  Ints axes;  // -1: of size 1 and dropped
};

bool sums_nothing(const Type& operand, const Ints& contract) {
  return std::all_of(contract.begin(), contract.end(), [&](std::int64_t a) {
    return operand.shape[static_cast<std::size_t>(a)] == 1;
  });
}

// The node is such a product, or shows one that nobody else reads under other axes.
std::optional<OuterProduct> outer_product_behind(const LoweredGraph& lowered,
                                                 const Node& n) {
  const Graph& g = lowered.graph();
  if (const lowering::Gemm* gemm = plain_gemm(lowered, n)) {
    const Type& out = g.type(n.outputs[0]);
    if (!is_float(out.dtype) || !sums_nothing(g.type(n.inputs[0]), gemm->lhs_contract))
      return std::nullopt;
    return OuterProduct{&n, gemm, iota_ints(out.rank())};
  }
  const auto moved = view_axes(lowered, n);
  if (!moved || lowered.uses(n.inputs[0]) != 1) return std::nullopt;
  const Node* before = lowered.producer(n.inputs[0]);
  auto product = before ? outer_product_behind(lowered, *before) : std::nullopt;
  if (product)
    for (std::int64_t& a : product->axes)
      if (a >= 0) a = (*moved)[static_cast<std::size_t>(a)];
  return product;
}

// One operand where its axes are read; size 1 for all others. `first_free`: the axis of
// the product that its free ones start at.
Value placed(const Value& v, const Ints& batch, const Ints& contract,
             std::int64_t first_free, const Ints& axes, std::int64_t rank) {
  std::vector<std::pair<std::int64_t, std::int64_t>> moves;  // read at, own axis
  std::int64_t free = first_free;
  for (std::int64_t a = 0; a < v.rank(); ++a) {
    if (contains(contract, a)) continue;
    const auto shared = std::find(batch.begin(), batch.end(), a);
    const std::int64_t product_axis =
        shared == batch.end() ? free++
                              : static_cast<std::int64_t>(shared - batch.begin());
    moves.emplace_back(axes[static_cast<std::size_t>(product_axis)], a);
  }
  std::sort(moves.begin(), moves.end());
  Ints order = contract;
  Shape shape(static_cast<std::size_t>(rank), 1);
  for (const auto& [at, own] : moves) {
    order.push_back(own);
    if (at >= 0) shape[static_cast<std::size_t>(at)] = v.dim(own);
  }
  return reshape(transpose(v, order), shape);
}

}  // namespace

Graph outer_products(const Graph& g) {
  const LoweredGraph lowered(g);
  RewriteRules rules{.sub_graph = outer_products};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    const auto product = outer_product_behind(lowered, n);
    if (!product) return std::nullopt;
    const lowering::Gemm& gemm = *product->gemm;
    const Value l = env[product->node->inputs[0].index];
    const Value r = env[product->node->inputs[1].index];
    const Shape& shape = g.type(n.outputs[0]).shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto num_batch = static_cast<std::int64_t>(gemm.lhs_batch.size());
    const std::int64_t num_left =
        l.rank() - num_batch - static_cast<std::int64_t>(gemm.lhs_contract.size());
    const Value y =
        placed(l, gemm.lhs_batch, gemm.lhs_contract, num_batch, product->axes, rank) *
        placed(r, gemm.rhs_batch, gemm.rhs_contract, num_batch + num_left, product->axes,
               rank);
    return {{broadcast_to(y, shape)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
