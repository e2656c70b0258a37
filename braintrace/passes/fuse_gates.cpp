// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/fuse_gates.h"

#include <algorithm>
#include <tuple>

#include "braintrace/passes/cse.h"
#include "braintrace/passes/loop_products_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

// One loop, seen from one round of the pass.
struct Loop {
  const ScanView& scan;
  const LoweredGraph& body;
  std::span<const Value> outer;

  const Value& weight(const LoopProduct& p) const { return outer[p.weight.index]; }
};

// ---- x V + y W = [x, y] [V; W]

// The products a tree of additions that nobody else reads is made of; empty when
// anything else is added, or the weights do not fit.
bool collect(const Loop& l, ValueId v, std::vector<LoopProduct>& found) {
  const Node* n = l.body.producer(v);
  if (!n) return false;
  if (is_micro(l.body.lowering(*n), MicroOp::add))
    return std::all_of(n->inputs.begin(), n->inputs.end(), [&](ValueId u) {
      return l.body.uses(u) == 1 && collect(l, u, found);
    });
  const auto p = as_loop_product(l.body, l.scan, *n);
  if (!p || p->bias) return false;
  found.push_back(*p);
  return true;
}

// The additions below a root belong to it.
void mark_inner(const Loop& l, const Node& root, std::vector<bool>& inner) {
  for (ValueId v : root.inputs) {
    const Node* n = l.body.producer(v);
    if (!is_micro(l.body.lowering(*n), MicroOp::add)) continue;
    inner[static_cast<std::size_t>(n - l.body.graph().nodes().data())] = true;
    mark_inner(l, *n, inner);
  }
}

BodyRules chains(const Loop& l) {
  BodyRules rules;
  const auto nodes = l.body.graph().nodes();
  std::vector<bool> inner(nodes.size(), false);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& n = nodes[i];
    std::vector<LoopProduct> parts;
    if (inner[i] || !is_micro(l.body.lowering(n), MicroOp::add)) continue;
    if (!collect(l, n.outputs[0], parts)) continue;
    mark_inner(l, n, inner);
    BodyRule& rule = rules[&n];
    Values weights;
    for (const LoopProduct& p : parts) {
      // All the way round as the first one, so that most are only copied.
      const bool turn = p.contract != parts[0].contract;
      weights.push_back(turn ? transpose(l.weight(p), {1, 0}) : l.weight(p));
      rule.reads.push_back(p.x);
    }
    const std::int64_t contract = parts[0].contract;
    const Value joined = concat(weights, contract);
    rule.write = [=, xs = rule.reads, out = n.outputs[0]](std::span<Value> env) {
      Values parts_of_x;
      for (ValueId x : xs) parts_of_x.push_back(env[x.index]);
      env[out.index] = emit_product(concat(parts_of_x, -1), joined, contract, {});
    };
  }
  return rules;
}

// ---- one x, several weights

void slice_up(const Value& y, const std::vector<LoopProduct>& parts,
              const Values& weights, std::span<Value> env) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t n = weights[i].dim(parts[i].free());
    env[parts[i].node->outputs[0].index] = slice_axis(y, -1, at, n);
    at += n;
  }
}

BodyRules gates(const Loop& l) {
  using Key = std::tuple<ValueId, std::int64_t, bool>;
  std::map<Key, std::vector<LoopProduct>> groups;
  for (const Node& n : l.body.graph().nodes())
    if (const auto p = as_loop_product(l.body, l.scan, n))
      groups[{p->x, p->contract, p->bias.has_value()}].push_back(*p);
  BodyRules rules;
  for (const auto& [key, parts] : groups) {
    if (parts.size() < 2) continue;
    Values weights, biases;
    for (const LoopProduct& p : parts) {
      weights.push_back(l.weight(p));
      if (p.bias) biases.push_back(l.outer[p.bias->index]);
    }
    const std::int64_t free = parts[0].free();
    const Value weight = concat(weights, free);
    const Tangent bias = biases.empty() ? Tangent() : concat(biases, 0);
    const ValueId first = parts[0].node->outputs[0];
    for (const LoopProduct& p : parts) rules[p.node] = {{first}, [](std::span<Value>) {}};
    rules[parts[0].node] = {
        {parts[0].x}, [parts = parts, weights, weight, bias](std::span<Value> env) {
          const Value y =
              emit_product(env[parts[0].x.index], weight, parts[0].contract, bias);
          slice_up(y, parts, weights, env);
        }};
  }
  return rules;
}

// ---- products of which only a part is read

struct Range {
  std::int64_t low = 0, high = 0;
};

// The positions along the last axis a slice takes, when it takes all of the other axes.
std::optional<Range> sliced_range(const LoweredGraph& body, const Node& n) {
  const auto* s = std::get_if<lowering::Slice>(&body.lowering(n));
  if (!s || s->step != Ints(s->step.size(), 1)) return std::nullopt;
  const Shape& from = body.graph().type(n.inputs[0]).shape;
  const Shape& to = body.graph().type(n.outputs[0]).shape;
  for (std::size_t a = 0; a + 1 < from.size(); ++a)
    if (from[a] != to[a]) return std::nullopt;
  return Range{s->start.back(), s->start.back() + to.back()};
}

std::vector<const Node*> readers(const Graph& g, ValueId v) {
  std::vector<const Node*> out;
  for (const Node& n : g.nodes())
    if (std::find(n.inputs.begin(), n.inputs.end(), v) != n.inputs.end())
      out.push_back(&n);
  return out;
}

void narrow_one(const Loop& l, const LoopProduct& p, BodyRules& rules) {
  const Graph& g = l.body.graph();
  const ValueId y = p.node->outputs[0];
  const std::int64_t n = g.type(y).shape.back();
  const std::vector<const Node*> slices = readers(g, y);
  if (slices.empty() || static_cast<int>(slices.size()) != l.body.uses(y)) return;
  Range all{n, 0};
  for (const Node* s : slices) {
    const auto r = sliced_range(l.body, *s);
    if (!r) return;
    all = {std::min(all.low, r->low), std::max(all.high, r->high)};
  }
  const std::int64_t size = all.high - all.low;
  if (size >= n || size < 1) return;
  const Value weight = slice_axis(l.weight(p), p.free(), all.low, size);
  const Tangent bias =
      p.bias ? slice_axis(l.outer[p.bias->index], 0, all.low, size) : Tangent();
  rules[p.node] = {{p.x}, [=](std::span<Value> env) {
                     env[y.index] =
                         emit_product(env[p.x.index], weight, p.contract, bias);
                   }};
  for (const Node* s : slices) {
    const Range r = *sliced_range(l.body, *s);
    rules[s] = {{y}, [=, out = s->outputs[0]](std::span<Value> env) {
                  const bool whole = r.high - r.low == size;
                  env[out.index] = whole ? env[y.index]
                                         : slice_axis(env[y.index], -1, r.low - all.low,
                                                      r.high - r.low);
                }};
  }
}

BodyRules narrowed(const Loop& l) {
  BodyRules rules;
  for (const Node& n : l.body.graph().nodes())
    if (const auto p = as_loop_product(l.body, l.scan, n)) narrow_one(l, *p, rules);
  return rules;
}

// ---- rounds

using Round = BodyRules (*)(const Loop&);

Graph run_round(const Graph& g, Round round, const FuseGatesOptions& options) {
  RewriteRules rules;
  rules.sub_graph = [&](const Graph& sub) { return run_round(sub, round, options); };
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    Node n = g.nodes()[i];
    auto scan = as_scan(n);
    if (!scan || scan->length < options.min_length) return std::nullopt;
    n.attrs = scan_attrs_with_body(n, run_round(*scan->body, round, options),
                                   scan->num_consts, scan->num_carry);
    scan = as_scan(n);
    Values outer;
    for (ValueId v : n.inputs) outer.push_back(env[v.index]);
    const LoweredGraph body(*scan->body);
    const BodyRules found = round({*scan, body, outer});
    if (found.empty()) return b.record(*n.op, outer, n.attrs, n.loc);
    return rewrite_loop(*scan, outer, found);
  };
  return rewrite(g, rules);
}

}  // namespace

// Chains first: sums of products with the same operands then are gates of one x.
Graph fuse_gates(const Graph& g, const FuseGatesOptions& options) {
  const Graph chained = cse(run_round(g, chains, options));
  return run_round(run_round(chained, gates, options), narrowed, options);
}

}  // namespace braintrace
