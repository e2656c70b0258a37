// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/reachability.h"

#include <algorithm>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/live_values.h"

namespace braintrace {
namespace {

// Axes of size 1 hold no positions: a convolution without a batch loses one behind it.
Shape without_units(Shape s) {
  std::erase(s, 1);
  return s;
}

}  // namespace

ReachFinder::ReachFinder(const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
                         const CompileOptions& options)
    : info_(info), groups_(groups), options_(options) {
  for (const HiddenGroup& g : groups)
    for (ValueId v : outs_of(g)) group_of_[v] = g.index;
}

// Members of an opened loop are values of its body; here they are the loop's results.
std::vector<ValueId> ReachFinder::outs_of(const HiddenGroup& g) const {
  std::vector<ValueId> out;
  for (const HiddenVar& m : g.members)
    out.push_back(g.descent ? info_.hidden_at(m.path)->out : m.out);
  return out;
}

// Breadth-first from y. `pass_groups`: hidden outputs of these groups are walked through,
// null = of none.
std::vector<ValueId> ReachFinder::walk(ValueId y, bool cross_etp,
                                       const std::set<std::int64_t>* pass_groups) const {
  return reach_forward(*info_.index, y, [&](Use u) {
    const Node& n = info_.index->node(u.node);
    if (!cross_etp && is_structural_etp(n)) return false;
    const auto it = group_of_.find(n.inputs[u.input]);
    return it == group_of_.end() || (pass_groups && pass_groups->contains(it->second));
  });
}

// As walk() across trainable ops, where derivatives flow.
std::vector<ValueId> ReachFinder::walk_derivatives(ValueId y) const {
  return reach_forward(*info_.index, y, [&](Use u) {
    return passes_tangent(*info_.index, u) &&
           !group_of_.contains(info_.index->node(u.node).inputs[u.input]);
  });
}

// Hidden outputs of all groups but these.
StopAt ReachFinder::outs_outside(std::set<std::int64_t> groups) const {
  return [this, groups = std::move(groups)](ValueId v) {
    const auto it = group_of_.find(v);
    return it != group_of_.end() && !groups.contains(it->second);
  };
}

Reach ReachFinder::reach(std::size_t node) const {
  Reach r =
      options_.mixing == Mixing::sum ? reach_reference(node) : reach_by_position(node);
  const ValueId y = info_.index->node(node).outputs[0];
  std::set<std::size_t> blocking;
  for (ValueId v : walk(y, false, &r.fed))
    for (const Use& u : info_.index->uses(v))
      if (is_structural_etp(info_.index->node(u.node))) blocking.insert(u.node);
  r.blocking.assign(blocking.begin(), blocking.end());
  for (ValueId v :
       options_.mixing == Mixing::sum ? walk(y, true, nullptr) : walk_derivatives(y))
    if (const auto it = group_of_.find(v);
        it != group_of_.end() && !r.fed.contains(it->second))
      r.beyond.insert(it->second);
  return r;
}

Reach ReachFinder::reach_reference(std::size_t node) const {
  Reach r;
  const ValueId y = info_.index->node(node).outputs[0];
  for (ValueId v : walk(y, false, nullptr))
    if (const auto it = group_of_.find(v); it != group_of_.end())
      r.fed.insert(it->second);
  const Shape shape = info_.program().type(y).shape;
  std::set<std::int64_t> connected;
  for (ValueId v : walk(y, false, &r.fed)) {
    const auto it = group_of_.find(v);
    if (it == group_of_.end() || !r.fed.contains(it->second)) continue;
    if (!passes_filter(shape, *info_.hidden_at_output(v))) {
      r.shape_mismatch.push_back(info_.hidden_at_output(v)->path);
      continue;
    }
    r.hidden_outs.push_back(v);
    connected.insert(it->second);
  }
  r.fed = connected;
  return r;
}

// The reference compares raw array shapes, a trailing state axis included.
bool ReachFinder::passes_filter(const Shape& y, const HiddenVar& h) const {
  const bool raw = options_.shape_filter == ShapeFilter::raw_broadcast;
  const Shape& state = raw ? info_.program().type(h.out).shape : h.varshape;
  return broadcast_shapes(y, state).has_value() ||
         (!raw && num_elements(y) == num_elements(state));
}

// A weight without data may be shared along leading axes (a batch); any other op must
// stand on the state's own positions.
bool ReachFinder::fits(std::size_t node, const Alignment& a, const HiddenVar& h) const {
  const Node& n = info_.index->node(node);
  const Shape y = info_.program().type(n.outputs[0]).shape;
  if (!stands_on(a, info_.program().type(h.out).shape, y)) return false;
  if (n.op->etp->x < 0) return broadcasts_to(y, h.varshape);
  return a.flat ? num_elements(y) == num_elements(h.varshape)
                : without_units(y) == without_units(h.varshape);
}

Reach ReachFinder::reach_by_position(std::size_t node) const {
  Reach r;
  const ValueId y = info_.index->node(node).outputs[0];
  const Shape shape = info_.program().type(y).shape;
  const FlowOptions flow{};
  std::set<Path> mismatch;
  auto collect = [&](const StopAt& stop_at, std::vector<ValueId>& outs,
                     std::vector<Use>& cuts) {
    const Influence inf =
        influence_of(*info_.index, std::vector{y}, shape, flow, stop_at);
    for (const auto& [v, alignment] : inf.reached) {
      const HiddenVar* h = info_.hidden_at_output(v);
      if (!h || !group_of_.contains(v) || !fits(node, alignment, *h)) continue;
      // The traces of an opened loop roll inside it; an op outside acts on all of it.
      if (groups_[static_cast<std::size_t>(group_of_.at(v))].descent) continue;
      if (passes_filter(shape, *h))
        outs.push_back(v);
      else
        mismatch.insert(h->path);
    }
    cuts = inf.cuts;
  };
  std::vector<ValueId> first;
  collect(outs_outside({}), first, r.cuts);
  r.shape_mismatch.assign(mismatch.begin(), mismatch.end());
  for (ValueId v : first) r.fed.insert(group_of_.at(v));
  if (r.fed.empty()) return r;
  collect(outs_outside(r.fed), r.hidden_outs, r.cuts);
  std::erase_if(r.hidden_outs,
                [&](ValueId v) { return !r.fed.contains(group_of_.at(v)); });
  return r;
}

PathClass ReachFinder::classify(std::size_t node, const Reach& r,
                                ValueId hidden_out) const {
  const ValueId y = info_.index->node(node).outputs[0];
  std::set<std::int64_t> fed = r.fed;
  const std::vector<ValueId> direct = walk(y, false, &fed);
  const bool is_direct =
      std::find(direct.begin(), direct.end(), hidden_out) != direct.end();
  for (std::size_t b : r.blocking)
    for (ValueId out : info_.index->node(b).outputs) {
      const std::vector<ValueId> through = walk(out, true, &fed);
      if (std::find(through.begin(), through.end(), hidden_out) != through.end())
        return is_direct ? PathClass::mixed : PathClass::all_through_other_etp;
    }
  return PathClass::all_direct;
}

SubProgram ReachFinder::tail(std::size_t node, std::int64_t group,
                             RelationKind kind) const {
  const ValueId y = info_.index->node(node).outputs[0];
  const Shape shape = info_.program().type(y).shape;
  FlowOptions flow{};
  if (kind == RelationKind::dense) {
    flow = kEverything;
  } else if (options_.mixing == Mixing::sum) {
    flow = {.mixing_is_kept = true, .cross_etp = false, .cross_products = true};
  }
  // The reference walks through the states of other groups; sound tails stop there.
  const StopAt stop = options_.mixing == Mixing::sum ? StopAt{} : outs_outside({group});
  const Influence inf = influence_of(*info_.index, std::vector{y}, shape, flow, stop);
  const std::vector<ValueId> outs = outs_of(groups_[static_cast<std::size_t>(group)]);
  const std::vector<std::size_t> nodes = nodes_between(*info_.index, inf, outs);
  return extract(*info_.index, nodes, std::vector{y}, outs,
                 [&](Use u) { return inf.kept.contains(u); });
}

}  // namespace braintrace
