// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/join_sums.h"

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"
#include "braintrace/passes/spread_product_impl.h"

namespace braintrace {
namespace {

// The two sides of an addition.
struct Meeting {
  const Node* product;
  const lowering::Gemm* gemm;
  ValueId summed;
  std::int64_t num_lead;  // axes it is summed over, the first ones
};

class Finder {
 public:
  Finder(const LoweredGraph& lowered, const JoinSumsOptions& options)
      : lowered_(lowered), g_(lowered.graph()), options_(options) {}

  std::optional<Meeting> find(const Node& n) const {
    if (!is_micro(lowered_.lowering(n), MicroOp::add)) return std::nullopt;
    for (const std::size_t side : {0U, 1U})
      if (auto found = meet(n.inputs[side], n.inputs[1 - side])) return found;
    return std::nullopt;
  }

 private:
  std::optional<Meeting> meet(ValueId product, ValueId sum) const {
    const Node *p = lowered_.producer(product), *s = lowered_.producer(sum);
    if (!p || !s || lowered_.uses(product) != 1 || lowered_.uses(sum) != 1)
      return std::nullopt;
    const lowering::Gemm* gemm = plain_gemm(lowered_, *p);
    if (!gemm || !is_large_sum(*s) || g_.type(product) != g_.type(sum))
      return std::nullopt;
    const auto& axes = std::get<lowering::Reduce>(lowered_.lowering(*s)).axes;
    const Shape& summed = g_.type(s->inputs[0]).shape;
    const Shape& left = g_.type(p->inputs[0]).shape;
    if (gemm->lhs_contract.size() != axes.size()) return std::nullopt;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (left[static_cast<std::size_t>(gemm->lhs_contract[i])] != summed[i])
        return std::nullopt;
    return Meeting{p, gemm, s->inputs[0], static_cast<std::int64_t>(axes.size())};
  }

  // Of one product, over leading axes.
  bool is_large_sum(const Node& s) const {
    const Lowering& l = lowered_.lowering(s);
    if (!is_sum(l)) return false;
    const auto& axes = std::get<lowering::Reduce>(l).axes;
    const Node* factors = lowered_.producer(s.inputs[0]);
    return factors && is_micro(lowered_.lowering(*factors), MicroOp::mul) &&
           lowered_.uses(s.inputs[0]) == 1 && is_float(g_.type(s.inputs[0]).dtype) &&
           axes == iota_ints(static_cast<std::int64_t>(axes.size())) &&
           g_.type(s.inputs[0]).size() >= options_.min_size;
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
  const JoinSumsOptions& options_;
};

Value joined(const Meeting& m, std::span<const Value> env) {
  const Value summed = env[m.summed.index];
  SpreadAxes to{{}, iota_ints(m.num_lead), summed.rank()};
  for (std::int64_t a = m.num_lead; a < summed.rank(); ++a) to.axes.push_back(a);
  const Value product = spread_product(*m.gemm, env[m.product->inputs[0].index],
                                       env[m.product->inputs[1].index], to);
  return sum(summed + product, {.axes = iota_ints(m.num_lead)});
}

}  // namespace

Graph join_sums(const Graph& g, const JoinSumsOptions& options) {
  const LoweredGraph lowered(g);
  const Finder finder(lowered, options);
  RewriteRules rules{
      .sub_graph = [&](const Graph& body) { return join_sums(body, options); }};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const auto found = finder.find(g.nodes()[i]);
    if (!found) return std::nullopt;
    return {{joined(*found, env)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
