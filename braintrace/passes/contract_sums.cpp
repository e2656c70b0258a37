// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/contract_sums.h"

#include <algorithm>

#include "braintrace/passes/products_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

struct Plan {
  SumOfProducts products;
  std::vector<Contraction> terms;
};

// Nullopt when a term is no product of two, or is the value itself.
std::optional<Plan> plan_of(const LoweredGraph& g, ValueId v,
                            const ExpandOptions& options) {
  Plan plan{expand_products(g, v, options), {}};
  for (const Term& t : plan.products.terms) {
    const bool stuck = std::any_of(t.factors.begin(), t.factors.end(),
                                   [&](const Factor& f) { return f.base == v; });
    const auto c = stuck ? std::nullopt : as_contraction(t, plan.products.sizes);
    if (!c) return std::nullopt;
    plan.terms.push_back(*c);
  }
  return plan;
}

bool pays(const Contraction& c, const Shape& sizes) {
  if (c.operands.size() < 2) return c.sums > 1;
  return c.gemms > 0 || is_enlarging(c, sizes);
}

// The terms meet in one pass: does an operand of `larger` have every label of c, so that
// c costs no further memory there?
bool rides_along(const Contraction& c, const Contraction& larger) {
  return std::any_of(
      larger.operands.begin(), larger.operands.end(), [&](const Operand& whole) {
        return std::all_of(c.operands.begin(), c.operands.end(), [&](const Operand& o) {
          return std::all_of(o.labels.begin(), o.labels.end(),
                             [&](std::int64_t l) { return contains(whole.labels, l); });
        });
      });
}

// Not only axes of size 1 are summed over.
bool sums_several(const Contraction& c, const SumOfProducts& p) {
  return std::any_of(c.operands.begin(), c.operands.end(), [&](const Operand& o) {
    return std::any_of(o.labels.begin(), o.labels.end(), [&](std::int64_t l) {
      return !contains(p.out, l) && p.sizes[static_cast<std::size_t>(l)] > 1;
    });
  });
}

// A sum of what is multiplied out, as a product of two instead.
std::optional<Contraction> unspread(const SumOfProducts& p) {
  auto c = as_spread_contraction(p.terms[0], p, 2);
  if (!c || c->operands.size() != 2 || order_kept(*c, p.out) != OrderKept::all ||
      !sums_several(*c, p) || !is_enlarging(*c, p.sizes))
    return std::nullopt;
  const auto is_spread = [](const Operand& o) { return !o.outer.empty(); };
  if (std::any_of(c->operands.begin(), c->operands.end(), is_spread)) return std::nullopt;
  return c;
}

// A sum that would come out turned, with an operand that is multiplied out: that one is
// made turned instead. It is no larger, and what reads the sum finds its rows. Where the
// rows are there already, it pays if factors wait behind the sum.
std::optional<Plan> plan_turned(const LoweredGraph& g, ValueId v, const Plan& straight) {
  if (straight.terms.size() != 1) return std::nullopt;
  const OrderKept before = order_kept(straight.terms[0], straight.products.out);
  Plan plan{expand_products(g, v, {.split_operands = true}), {}};
  const SumOfProducts& p = plan.products;
  if (p.terms.size() != 1) return std::nullopt;
  if (straight.terms[0].operands.size() == 1)
    if (auto product = unspread(p)) {
      plan.terms.push_back(std::move(*product));
      return plan;
    }
  const auto c = as_spread_contraction(p.terms[0], p, straight.terms[0].operands.size());
  const auto is_spread = [](const Operand& o) { return !o.outer.empty(); };
  if (!c || std::none_of(c->operands.begin(), c->operands.end(), is_spread) ||
      largest_operand(*c, p.sizes) >
          largest_operand(straight.terms[0], straight.products.sizes))
    return std::nullopt;
  if (order_kept(*c, p.out) != OrderKept::all)
    if (auto many = as_many_products(*c, p)) {
      plan.terms.push_back(std::move(*many));
      return plan;
    }
  const OrderKept kept = order_kept(*c, p.out);
  const bool waits = kept != OrderKept::none && kept == before && !c->outside.empty() &&
                     sums_several(*c, p);
  if (kept <= before && !waits) return std::nullopt;
  plan.terms.push_back(*c);
  return plan;
}

// A sum: some term must gain; those that do not stay as they are, and take along others
// of the same sum.
std::optional<Plan> plan_sum(const LoweredGraph& g, ValueId v) {
  for (const bool split : {true, false}) {
    auto plan = plan_of(g, v, {.split_gemms = split});
    if (!plan) continue;
    bool any = false;
    for (Contraction& c : plan->terms) c.as_product = pays(c, plan->products.sizes);
    for (Contraction& c : plan->terms) {
      const bool along =
          c.gemms == 0 &&
          std::any_of(plan->terms.begin(), plan->terms.end(),
                      [&](const auto& l) { return !l.as_product && rides_along(c, l); });
      any = any || (c.as_product && !along);
    }
    if (auto turned = plan_turned(g, v, *plan)) return turned;
    if (!any) continue;
    merge_common(plan->terms, plan->products.out);
    return plan;
  }
  return std::nullopt;
}

// A product, or a permuted one: worth it when operands were looked through, or the
// permutation goes away.
std::optional<Plan> plan_product(const LoweredGraph& g, const Node& n) {
  auto plan = plan_of(g, n.outputs[0], {});
  if (!plan || plan->terms.size() != 1) return std::nullopt;
  const Contraction& c = plan->terms[0];
  if (c.operands.size() != 2 || c.gemms != 1 || c.sums > 0) return std::nullopt;
  if (order_kept(c, plan->products.out) != OrderKept::all) return std::nullopt;
  const auto& factors = plan->products.terms[0].factors;
  const bool same = factors.size() == 2 && n.inputs.size() == 2 &&
                    factors[0].base == n.inputs[0] && factors[1].base == n.inputs[1];
  return same ? std::nullopt : plan;
}

std::optional<Plan> plan_addition(const LoweredGraph& g, ValueId v) {
  auto plan = plan_of(g, v, {});
  if (!plan || !merge_common(plan->terms, plan->products.out)) return std::nullopt;
  return plan;
}

std::optional<Plan> plan_node(const LoweredGraph& g, const Node& n) {
  if (n.outputs.size() != 1 || !is_float(g.graph().type(n.outputs[0]).dtype))
    return std::nullopt;
  const Lowering& l = g.lowering(n);
  if (is_sum(l)) return plan_sum(g, n.outputs[0]);
  if (plain_gemm(g, n) || std::holds_alternative<lowering::Transpose>(l))
    return plan_product(g, n);
  if (is_micro(l, MicroOp::add) || is_micro(l, MicroOp::sub))
    return plan_addition(g, n.outputs[0]);
  return std::nullopt;
}

}  // namespace

Graph contract_sums(const Graph& g) {
  const LoweredGraph lowered(g);
  RewriteRules rules{.sub_graph = contract_sums};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const auto plan = plan_node(lowered, g.nodes()[i]);
    if (!plan) return std::nullopt;
    return {{emit_contractions(plan->terms, plan->products, env)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
