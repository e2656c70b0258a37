// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/outer_products.h"

#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"
#include "braintrace/passes/spread_product_impl.h"

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

bool is_stretched(const LoweredGraph& lowered, ValueId v) {
  const Node* n = lowered.producer(v);
  if (!n || !std::holds_alternative<lowering::Broadcast>(lowered.lowering(*n)))
    return false;
  const Graph& g = lowered.graph();
  return g.type(n->inputs[0]).size() < g.type(v).size();
}

// A multiplication of two stretched values that is read under other axes only.
struct ReadElsewhere {
  const Node* product = nullptr;
  std::vector<const Node*> views;  // from the product to the reader
};
std::optional<ReadElsewhere> stretched_product_behind(const LoweredGraph& lowered,
                                                      const Node& n) {
  ReadElsewhere found{&n, {}};
  while (found.product && view_axes(lowered, *found.product)) {
    const ValueId before = found.product->inputs[0];
    found.views.insert(found.views.begin(), found.product);
    if (lowered.uses(before) != 1) return std::nullopt;
    found.product = lowered.producer(before);
  }
  const Node* p = found.product;
  if (found.views.empty() || !p || !is_micro(lowered.lowering(*p), MicroOp::mul) ||
      !is_float(lowered.graph().type(p->outputs[0]).dtype) ||
      !is_stretched(lowered, p->inputs[0]) || !is_stretched(lowered, p->inputs[1]))
    return std::nullopt;
  return found;
}

}  // namespace

Graph outer_products(const Graph& g) {
  const LoweredGraph lowered(g);
  RewriteRules rules{.sub_graph = outer_products};
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    const Node& n = g.nodes()[i];
    if (const auto stretched = stretched_product_behind(lowered, n)) {
      Values in;
      for (ValueId v : stretched->product->inputs) in.push_back(env[v.index]);
      for (const Node* view : stretched->views)
        for (Value& v : in)
          v = b.record(*view->op, std::vector{v}, view->attrs, view->loc)[0];
      return Values{in[0] * in[1]};
    }
    const auto product = outer_product_behind(lowered, n);
    if (!product) return std::nullopt;
    const lowering::Gemm& gemm = *product->gemm;
    const Shape& shape = g.type(n.outputs[0]).shape;
    const Ints dropped(gemm.lhs_contract.size(), -1);
    const Value y = spread_product(gemm, env[product->node->inputs[0].index],
                                   env[product->node->inputs[1].index],
                                   {.axes = product->axes,
                                    .contracted = dropped,
                                    .rank = static_cast<std::int64_t>(shape.size())});
    return {{broadcast_to(y, shape)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
