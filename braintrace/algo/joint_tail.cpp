// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/joint_tail.h"

#include <algorithm>
#include <map>
#include <set>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

class Writer {
 public:
  Writer(const ETraceGraph& graph, std::span<const RelationWriter* const> relations)
      : info_(graph.module_info),
        index_(*info_.index),
        group_(relations[0]->group()),
        relations_(relations) {
    const bool stops = graph.options.mixing != Mixing::sum;
    for (const HiddenGroup& g : graph.hidden_groups)
      for (const HiddenVar& m : g.members) {
        const ValueId out = g.descent ? info_.hidden_at(m.path)->out : m.out;
        if (g.index == group_.index)
          outs_.push_back(out);
        else if (stops)
          stop_.insert(out);
      }
    for (const RelationWriter* r : relations) ys_.insert(r->relation().y);
  }

  std::optional<SubProgram> run() {
    follow();
    if (!is_sound()) return std::nullopt;
    SubProgram p = written();
    if (has_while(p.graph)) return std::nullopt;
    return p;
  }

 private:
  // As ReachFinder::tail() of a dense relation, from all y at once.
  void follow() {
    reached_.assign(index_.graph().num_values(), false);
    for (ValueId y : ys_) reached_[y.index] = true;
    const std::span<const Node> nodes = index_.graph().nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (std::size_t k = 0; k < nodes[i].inputs.size(); ++k) {
        const ValueId v = nodes[i].inputs[k];
        if (!reached_[v.index] || stop_.contains(v) || !passes_tangent(index_, {i, k}))
          continue;
        for (ValueId out : nodes[i].outputs) {
          if (!is_float(index_.graph().type(out).dtype)) continue;
          reached_[out.index] = true;
          way_.kept.insert({i, k});
        }
      }
  }

  bool has_float_leaves(const Trainable& t) const {
    return std::all_of(
        t.prologue.parameters.begin(), t.prologue.parameters.end(),
        [&](const WeightVar& w) { return is_float(index_.graph().type(w.id).dtype); });
  }

  // Is what one relation reaches the same whether others are asked beside it?
  bool is_sound() const {
    for (const RelationWriter* r : relations_) {
      if (stop_.contains(r->relation().y)) return false;
      for (const Trainable& t : r->relation().trainables)
        if (reached_[t.operand.index] || !has_float_leaves(t)) return false;
    }
    std::set<std::size_t> kept;
    for (const Use& u : way_.kept) kept.insert(u.node);
    for (ValueId v : stop_)
      for (const Use& u : index_.uses(v))
        if (reached_[v.index] && kept.contains(u.node)) return false;
    return true;
  }

  bool is_inner(Use u) const {
    return way_.kept.contains(u) && inner_.contains(index_.node(u.node).inputs[u.input]);
  }

  // What the nodes on the way read from beside it.
  std::set<ValueId> constants() const {
    std::set<ValueId> out;
    for (std::size_t i : nodes_)
      for (std::size_t k = 0; k < index_.node(i).inputs.size(); ++k)
        if (!is_inner({i, k})) out.insert(index_.node(i).inputs[k]);
    for (ValueId y : ys_)
      if (!computed_.contains(y)) out.insert(y);
    for (ValueId v : outs_)
      if (!inner_.contains(v)) out.insert(v);
    return out;
  }

  SubProgram written() {
    nodes_ = nodes_between(index_, way_, outs_);
    for (std::size_t i : nodes_)
      computed_.insert(index_.node(i).outputs.begin(), index_.node(i).outputs.end());
    inner_ = computed_;
    inner_.insert(ys_.begin(), ys_.end());
    const std::set<ValueId> beside = constants();

    const auto builder = Builder::create();
    std::map<ValueId, Value> constant, variable, change;
    for (ValueId v : beside) constant[v] = builder->input(index_.graph().type(v));
    for (const RelationWriter* r : relations_) {
      const ValueId y = r->relation().y;
      change[y] = builder->input(r->y_type());
      if (!computed_.contains(y)) variable[y] = constant.at(y) + change.at(y);
    }
    for (std::size_t i : nodes_) {
      const Node& n = index_.node(i);
      std::vector<Value> in;
      for (std::size_t k = 0; k < n.inputs.size(); ++k)
        in.push_back((is_inner({i, k}) ? variable : constant).at(n.inputs[k]));
      const std::vector<Value> out = builder->record(*n.op, in, n.attrs, n.loc);
      for (std::size_t k = 0; k < out.size(); ++k) {
        const auto moved = change.find(n.outputs[k]);
        variable[n.outputs[k]] = moved == change.end() ? out[k] : out[k] + moved->second;
      }
    }
    std::vector<Value> members;
    for (ValueId v : outs_)
      members.push_back((inner_.contains(v) ? variable : constant).at(v));
    return {builder->finish(std::vector{group_.concat_hidden(members)}),
            {beside.begin(), beside.end()}};
  }

  const ModuleInfo& info_;
  const GraphIndex& index_;
  const HiddenGroup& group_;
  std::span<const RelationWriter* const> relations_;
  std::vector<ValueId> outs_;  // of the group's members
  std::set<ValueId> stop_, ys_;
  std::vector<bool> reached_;  // by value
  Influence way_;
  std::vector<std::size_t> nodes_;  // on the way, in program order
  std::set<ValueId> computed_, inner_;
};

}  // namespace

std::optional<JointTail> JointTail::of(const ETraceGraph& graph,
                                       std::span<const RelationWriter* const> relations) {
  std::optional<SubProgram> p = Writer(graph, relations).run();
  if (!p) return std::nullopt;
  JointTail tail;
  tail.program_ = std::move(*p);
  return tail;
}

std::vector<Value> JointTail::back_to_ys(const StepValues& v, const Value& ct) const {
  const std::vector<Type> types = program_.graph.input_types();
  std::vector<Value> in;
  for (ValueId id : program_.constants) in.push_back(v.at(id));
  // -0 is what leaves every number as it is.
  for (std::size_t i = in.size(); i < types.size(); ++i)
    in.push_back(Value(full(types[i].shape, -0.0, types[i].dtype)));
  std::vector<bool> active(in.size(), false);
  std::fill(active.begin() + static_cast<std::ptrdiff_t>(program_.constants.size()),
            active.end(), true);
  const VjpResult r = vjp_values(program_.graph, active, in, std::vector<Tangent>{ct});
  std::vector<Value> out;
  for (std::size_t i = program_.constants.size(); i < in.size(); ++i)
    out.push_back(materialize(r.cotangents[i], types[i]));
  return out;
}

}  // namespace braintrace
