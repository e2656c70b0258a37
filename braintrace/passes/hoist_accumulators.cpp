// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/hoist_accumulators.h"

#include <algorithm>

#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/products_impl.h"
#include "braintrace/passes/rewrite.h"
#include "braintrace/passes/scan_split_impl.h"

namespace braintrace {
namespace {

// carry' = carry + added, or carry - added
struct Accumulator {
  ValueId added;
  bool minus = false;
};

// Summed over steps it is a product again, so the stack will never be written.
bool is_product(const LoweredGraph& g, ValueId v) {
  const SumOfProducts p = expand_products(g, v);
  return std::all_of(p.terms.begin(), p.terms.end(), [&](const Term& t) {
    const auto c = as_contraction(t, p.sizes);
    return c && c->operands.size() == 2 && (c->gemms > 0 || is_enlarging(*c, p.sizes));
  });
}

std::optional<Accumulator> accumulator(const LoweredGraph& body, ValueId in,
                                       ValueId out) {
  const Node* n = body.producer(out);
  if (!n || n->inputs.size() != 2 || body.uses(in) != 1 || body.uses(out) != 1)
    return std::nullopt;
  if (!is_float(body.graph().type(out).dtype)) return std::nullopt;
  const Lowering& l = body.lowering(*n);
  if (is_micro(l, MicroOp::add)) {
    if (n->inputs[0] == in) return Accumulator{n->inputs[1]};
    if (n->inputs[1] == in) return Accumulator{n->inputs[0]};
  }
  if (is_micro(l, MicroOp::sub) && n->inputs[0] == in)
    return Accumulator{n->inputs[1], true};
  return std::nullopt;
}

// By carry: what it adds up, when the loop is better off without it.
std::vector<std::optional<Accumulator>> find(const ScanView& scan,
                                             const HoistAccumulatorsOptions& options) {
  const LoweredGraph body(*scan.body);
  std::vector<std::optional<Accumulator>> found(scan.num_carry);
  for (std::size_t k = 0; k < scan.num_carry; ++k) {
    const ValueId in = scan.body->inputs()[scan.num_consts + k];
    auto a = accumulator(body, in, scan.body->outputs()[k]);
    if (!a) continue;
    const std::int64_t bytes = num_bytes(scan.body->type(a->added)) * scan.length;
    if (bytes <= options.max_bytes || is_product(body, a->added)) found[k] = a;
  }
  return found;
}

bool is_zero(const Value& v) {
  if (const auto a = literal(v)) return *a == zeros(a->shape(), a->dtype());
  const Node* n = producer(v);
  if (!n || n->inputs.size() != 1) return false;
  const Value from(v.builder(), n->inputs[0]);
  const Type in[] = {from.type()}, out[] = {v.type()};
  const bool stretched = n->op->lower && std::holds_alternative<lowering::Broadcast>(
                                             n->op->lower({in, out, n->attrs}));
  return stretched && is_zero(from);
}

Value total_from(const Value& init, const Value& total, bool minus) {
  if (is_zero(init)) return minus ? -total : total;
  return minus ? init - total : init + total;
}

Values hoist(Builder& b, const Node& n, const ScanView& scan,
             const std::vector<std::optional<Accumulator>>& found,
             std::span<const Value> in) {
  const auto ids = scan.body->inputs(), outs = scan.body->outputs();
  std::vector<ValueId> body_in, body_out, added;
  Values loop_in;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool is_carry = i >= scan.num_consts && i < scan.num_consts + scan.num_carry;
    if (is_carry && found[i - scan.num_consts]) continue;
    body_in.push_back(ids[i]);
    loop_in.push_back(in[i]);
  }
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (i < scan.num_carry && found[i]) {
      added.push_back(found[i]->added);
    } else {
      body_out.push_back(outs[i]);
    }
  }
  const std::size_t num_carry = scan.num_carry - added.size(), kept = body_out.size();
  body_out.insert(body_out.end(), added.begin(), added.end());
  Attrs attrs = scan_attrs_with_body(n, subgraph(*scan.body, body_in, body_out),
                                     scan.num_consts, num_carry);
  const Values loop = b.record(*n.op, loop_in, std::move(attrs), n.loc);

  Values results;
  std::size_t next = 0, next_added = kept;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (i >= scan.num_carry || !found[i]) {
      results.push_back(loop[next++]);
      continue;
    }
    const Value init = in[scan.num_consts + i];
    const Value total = sum(loop[next_added++], {.axes = {0}});
    results.push_back(total_from(init, total, found[i]->minus));
  }
  return results;
}

}  // namespace

Graph hoist_accumulators(const Graph& g, const HoistAccumulatorsOptions& options) {
  RewriteRules rules;
  rules.sub_graph = [&](const Graph& sub) { return hoist_accumulators(sub, options); };
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    Node n = g.nodes()[i];
    auto scan = as_scan(n);
    if (!scan || scan->length < 1) return std::nullopt;
    n.attrs = scan_attrs_with_body(n, hoist_accumulators(*scan->body, options),
                                   scan->num_consts, scan->num_carry);
    scan = as_scan(n);
    Values in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    const auto found = find(*scan, options);
    const bool any =
        std::any_of(found.begin(), found.end(), [](const auto& a) { return bool(a); });
    if (!any) return b.record(*n.op, in, n.attrs, n.loc);
    return hoist(b, n, *scan, found, in);
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
