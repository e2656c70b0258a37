// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/split_scan.h"

#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/batch.h"
#include "braintrace/passes/rewrite.h"
#include "braintrace/passes/scan_split_impl.h"

namespace braintrace {
namespace {

// Values outside the loop for values of its body.
struct KnownValues {
  std::vector<ValueId> ids;
  Values values;
  std::vector<BatchAxis> axes;  // 0: one entry per step

  void add(ValueId id, const Value& v, BatchAxis axis) {
    ids.push_back(id);
    values.push_back(v);
    axes.push_back(axis);
  }
};

// The body's `wanted` from what is known, for all steps at once.
void compute(const Graph& body, std::span<const ValueId> wanted, std::int64_t length,
             KnownValues& known) {
  if (wanted.empty()) return;
  const Graph g = subgraph(body, known.ids, wanted);
  const BatchResult r = batch_graph(g, known.values, known.axes);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool same = !r.axes[i];
    known.add(wanted[i],
              same ? r.values[i] : batch_in_front(r.values[i], r.axes[i], length),
              same ? BatchAxis() : 0);
  }
}

// What must be there for the nodes of a graph to be written down.
std::vector<bool> needed_values(const Graph& g) {
  std::vector<bool> needed(g.num_values(), false);
  for (const Node& n : g.nodes())
    for (ValueId v : n.inputs) needed[v.index] = true;
  for (ValueId v : g.outputs()) needed[v.index] = true;
  return needed;
}

struct SplitLoop {
  const Node& node;
  const ScanView& view;
  const ScanSplit& split;
  std::span<const Value> in;

  const Graph& body() const { return *view.body; }
  std::size_t first_x() const { return view.num_consts + view.num_carry; }
};

// Everything the loop may read that does not change with its carry.
KnownValues known_before(const SplitLoop& l) {
  KnownValues known;
  const auto ids = l.body().inputs();
  for (std::size_t i = 0; i < l.view.num_consts; ++i) known.add(ids[i], l.in[i], {});
  for (std::size_t k = 0; k < l.view.num_carry; ++k)
    if (l.split.unchanged[k])
      known.add(ids[l.view.num_consts + k], l.in[l.view.num_consts + k], {});
  compute(l.body(), l.split.once, l.view.length, known);
  for (std::size_t i = l.first_x(); i < ids.size(); ++i) known.add(ids[i], l.in[i], 0);
  compute(l.body(), l.split.ahead, l.view.length, known);
  return known;
}

// Runs the smaller loop; its stacked values become known. Result: the carry at the end.
Values run_loop(Builder& b, const SplitLoop& l, KnownValues& known) {
  std::vector<ValueId> wanted;
  std::vector<ValueId> carry_ids;
  Values carry;
  for (std::size_t k = 0; k < l.view.num_carry; ++k) {
    if (!l.split.carried[k]) continue;
    wanted.push_back(l.body().outputs()[k]);
    carry_ids.push_back(l.body().inputs()[l.view.num_consts + k]);
    carry.push_back(l.in[l.view.num_consts + k]);
  }
  const std::size_t num_carry = carry.size();
  wanted.insert(wanted.end(), l.split.stacked.begin(), l.split.stacked.end());
  if (wanted.empty()) return {};

  std::vector<ValueId> offered = carry_ids;
  offered.insert(offered.end(), known.ids.begin(), known.ids.end());
  const Graph all = subgraph(l.body(), offered, wanted);
  const std::vector<bool> needed = needed_values(all);
  std::vector<ValueId> order;
  Values in;
  std::size_t num_consts = 0;
  const auto offer = [&](bool varying) {
    for (std::size_t i = 0; i < known.ids.size(); ++i) {
      if (!needed[num_carry + i] || known.axes[i].has_value() != varying) continue;
      order.push_back(known.ids[i]);
      in.push_back(known.values[i]);
    }
  };
  offer(false);
  num_consts = in.size();
  order.insert(order.end(), carry_ids.begin(), carry_ids.end());
  in.insert(in.end(), carry.begin(), carry.end());
  offer(true);
  Attrs attrs = scan_attrs_with_body(l.node, subgraph(l.body(), order, wanted),
                                     num_consts, num_carry);
  const Values out = b.record(*l.node.op, in, std::move(attrs), l.node.loc);
  for (std::size_t i = 0; i < l.split.stacked.size(); ++i)
    known.add(l.split.stacked[i], out[num_carry + i], 0);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(num_carry)};
}

Value known_value(const KnownValues& known, ValueId id, std::int64_t length) {
  for (std::size_t i = known.ids.size(); i-- > 0;)
    if (known.ids[i] == id) return batch_in_front(known.values[i], known.axes[i], length);
  BT_INVARIANT(false);
  return {};
}

// Something of the right type for an output nobody reads.
Value placeholder(Builder& b, const Type& t) {
  return broadcast_to(b.constant(zeros({}, t.dtype)), t.shape);
}

Values split(Builder& b, const SplitLoop& l) {
  KnownValues known = known_before(l);
  const Values carried = run_loop(b, l, known);
  const auto ys = l.body().outputs().subspan(l.view.num_carry);
  std::vector<ValueId> rest;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    const Place p = l.split.ys[i];
    if (p == Place::after || p == Place::invariant) rest.push_back(ys[i]);
  }
  compute(l.body(), rest, l.view.length, known);

  Values results;
  std::size_t next = 0;
  for (std::size_t k = 0; k < l.view.num_carry; ++k) {
    const Value init = l.in[l.view.num_consts + k];
    results.push_back(l.split.carried[k] ? carried[next++] : init);
  }
  for (std::size_t i = 0; i < ys.size(); ++i) {
    Type t = l.body().type(ys[i]);
    t.shape.insert(t.shape.begin(), l.view.length);
    results.push_back(l.split.ys[i] == Place::unused
                          ? placeholder(b, t)
                          : known_value(known, ys[i], l.view.length));
  }
  return results;
}

}  // namespace

Graph split_scan(const Graph& g, const SplitScanOptions& options) {
  const std::vector<bool> reads = read_values(g);
  RewriteRules rules;
  rules.sub_graph = [&](const Graph& sub) { return split_scan(sub, options); };
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    Node n = g.nodes()[i];
    auto scan = as_scan(n);
    if (!scan || scan->length < 1) return std::nullopt;
    n.attrs = scan_attrs_with_body(n, split_scan(*scan->body, options), scan->num_consts,
                                   scan->num_carry);
    scan = as_scan(n);
    std::vector<bool> used;
    for (ValueId v : n.outputs) used.push_back(reads[v.index]);
    Values in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    const ScanSplit plan = plan_split(*scan, used, options);
    if (!plan.changes) return b.record(*n.op, in, n.attrs, n.loc);
    return split(b, {n, *scan, plan, in});
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
