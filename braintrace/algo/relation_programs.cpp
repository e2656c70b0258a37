// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/relation_programs.h"

#include <algorithm>
#include <set>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/anchor.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

Value state_slice(const Value& v, std::int64_t a) {
  return squeeze(slice_axis(v, -1, a, 1), -1);
}

class Writer {
 public:
  Writer(const ETraceGraph& g, const HiddenParamOpRelation& r, std::int64_t group)
      : graph_(g),
        relation_(r),
        group_(g.hidden_groups[static_cast<std::size_t>(group)]),
        node_(g.module_info.program().nodes()[r.node]),
        rule_(*node_.op->etp),
        types_(types_of(g.module_info.program(), node_)) {}

  std::vector<Type> traces() const {
    std::vector<Type> out;
    for (int slot = 0; slot < num_slots(); ++slot) {
      Type t = rule_.trace(signature(), slot);
      if (rule_.x < 0) t.shape = group_.varshape();  // shared along leading axes
      t.shape.push_back(group_.num_state());
      out.push_back(std::move(t));
    }
    return out;
  }

  BoundProgram df(std::size_t tail) const {
    BoundProgram p{.reads = relation_.tail_constants[tail]};
    p.reads.push_back(relation_.y);
    const auto builder = Builder::create();
    const std::vector<Value> in = inputs(*builder, p.reads);
    std::vector<Tangent> tangents(in.size());
    tangents.back() = ones_like(in.back());
    const JvpResult r = jvp_values(relation_.tails[tail], in, tangents);
    std::vector<Value> members;
    for (std::size_t i = 0; i < r.outs.size(); ++i)
      members.push_back(materialize(r.tangents[i], r.outs[i].type()));
    p.graph = builder->finish(std::vector{group_.concat_hidden(members)});
    return p;
  }

  BoundProgram roll() const {
    BoundProgram p{.reads = node_.inputs};
    const auto builder = Builder::create();
    const std::vector<Value> in = inputs(*builder, p.reads);
    Shape v = group_.varshape();
    v.push_back(group_.num_state());
    Shape vv = v;
    vv.push_back(group_.num_state());
    const DType dtype = types_.out[0].dtype;
    const Value d = builder->input({dtype, vv});
    const Value df = builder->input({dtype, v});
    std::vector<Value> out;
    for (int slot = 0; slot < num_slots(); ++slot) {
      const Value eps = builder->input(traces()[static_cast<std::size_t>(slot)]);
      out.push_back(rolled(in, slot, d, df, eps));
    }
    p.graph = builder->finish(out);
    return p;
  }

  BoundProgram solve(PrologueRule prologue, std::vector<std::string>& leaves) const {
    BoundProgram p{.reads = node_.inputs};
    std::vector<BoundProgram> pullbacks;
    for (const Trainable& t : relation_.trainables)
      pullbacks.push_back(pull_back(t, prologue));
    for (const BoundProgram& b : pullbacks)
      p.reads.insert(p.reads.end(), b.reads.begin(), b.reads.end());
    const auto builder = Builder::create();
    const std::vector<Value> in = inputs(*builder, p.reads);
    Shape v = group_.varshape();
    v.push_back(group_.num_state());
    const Value signal = builder->input({types_.out[0].dtype, v});
    std::vector<Value> slots;
    for (const Type& t : traces()) {
      const Value eps = builder->input(t);
      slots.push_back(contracted(in, static_cast<int>(slots.size()), signal, eps));
    }
    const std::vector<Value> weights = through_effective(in, slots);
    std::vector<Value> out;
    std::size_t next = node_.inputs.size();
    for (std::size_t k = 0; k < relation_.trainables.size(); ++k) {
      std::vector<Value> args(
          in.begin() + static_cast<std::ptrdiff_t>(next),
          in.begin() + static_cast<std::ptrdiff_t>(next + pullbacks[k].reads.size()));
      next += pullbacks[k].reads.size();
      args.push_back(weights[weight_position(relation_.trainables[k].key)]);
      for (const Value& g : inline_graph(pullbacks[k].graph, args)) out.push_back(g);
      for (const WeightVar& w : relation_.trainables[k].prologue.parameters)
        leaves.push_back(to_slashes(w.key.empty() ? w.path : w.path.child(w.key)));
    }
    p.graph = builder->finish(out);
    return p;
  }

 private:
  Signature signature() const { return {types_.in, types_.out, node_.attrs}; }
  Site site(std::span<const Value> in) const {
    return {*node_.op, in.first(node_.inputs.size()), {}, node_.attrs, node_.loc};
  }
  int num_slots() const {
    const auto builder = Builder::create();
    const std::vector<Value> in = inputs(*builder, node_.inputs);
    return static_cast<int>(braintrace::num_slots(rule_, site(in)));
  }
  std::vector<Value> inputs(Builder& b, const std::vector<ValueId>& ids) const {
    std::vector<Value> out;
    for (ValueId v : ids) out.push_back(b.input(graph_.module_info.program().type(v)));
    return out;
  }

  // A group-shaped value (of one state) at the position each trace entry drives.
  Value on_trace(int slot, const Value& v) const {
    if (rule_.x < 0) return v;
    const Type trace = rule_.trace(signature(), slot);
    const Value y = reshape(v, types_.out[0].shape);
    return anchor_broadcast(rule_.anchor(signature(), slot), y, trace.shape);
  }

  Value instant(std::span<const Value> in, int slot, const Value& df) const {
    if (rule_.x < 0) return df;
    return rule_.instant(site(in), slot, reshape(df, types_.out[0].shape));
  }

  Value rolled(std::span<const Value> in, int slot, const Value& d, const Value& df,
               const Value& eps) const {
    std::vector<Value> states;
    for (std::int64_t a = 0; a < group_.num_state(); ++a) {
      Value next = instant(in, slot, state_slice(df, a));
      const Value row = squeeze(slice_axis(d, -2, a, 1), -2);
      for (std::int64_t b = 0; b < group_.num_state(); ++b)
        next = next + on_trace(slot, state_slice(row, b)) * state_slice(eps, b);
      states.push_back(next);
    }
    return stack(states, -1);
  }

  // Sum over states of signal times trace, in the slot's shape.
  Value contracted(std::span<const Value> in, int slot, const Value& signal,
                   const Value& eps) const {
    Value total = on_trace(slot, state_slice(signal, 0)) * state_slice(eps, 0);
    for (std::int64_t a = 1; a < group_.num_state(); ++a)
      total = total + on_trace(slot, state_slice(signal, a)) * state_slice(eps, a);
    if (rule_.x >= 0) return contract_trace(rule_, site(in), slot, total);
    const Shape w = types_.in[0].shape;
    Ints lead = iota_ints(total.rank() - static_cast<std::int64_t>(w.size()));
    return lead.empty() ? total : sum(total, {.axes = lead});
  }

  // From effective weights to the op's weight inputs, in the rule's order.
  std::vector<Value> through_effective(std::span<const Value> in,
                                       const std::vector<Value>& slots) const {
    if (!rule_.effective) return slots;
    const auto builder = Builder::create();
    const std::vector<Value> raw = inputs(*builder, node_.inputs);
    const Graph effective = builder->finish(rule_.effective(site(raw)));
    std::vector<bool> active(raw.size(), false);
    const auto weights = rule_.weights(signature());
    for (const WeightInput& w : weights) active[static_cast<std::size_t>(w.input)] = true;
    const std::vector<Tangent> ct(slots.begin(), slots.end());
    const VjpResult r = vjp_values(effective, active, in.first(node_.inputs.size()), ct);
    std::vector<Value> out;
    for (const WeightInput& w : weights) {
      const auto i = static_cast<std::size_t>(w.input);
      out.push_back(materialize(r.cotangents[i], types_.in[i]));
    }
    return out;
  }

  std::size_t weight_position(const std::string& key) const {
    const auto weights = rule_.weights(signature());
    const auto it = std::find_if(weights.begin(), weights.end(),
                                 [&](const WeightInput& w) { return w.key == key; });
    BT_INVARIANT(it != weights.end());
    return static_cast<std::size_t>(it - weights.begin());
  }

  bool is_hook(const std::string& key) const {
    const Attr* hooks = node_.attrs.find("hooks");
    return hooks && std::get<std::string>(*hooks).find(key) != std::string::npos;
  }

  // (reads..., gradient of the operand) -> gradient of each parameter leaf behind it
  BoundProgram pull_back(const Trainable& t, PrologueRule rule) const {
    const ModuleInfo& info = graph_.module_info;
    std::vector<ValueId> leaves;
    for (const WeightVar& w : t.prologue.parameters) leaves.push_back(w.id);
    const bool drop = rule == PrologueRule::drop && !is_hook(t.key);
    const auto builder = Builder::create();
    if (t.prologue.is_identity() || drop) {
      BoundProgram p;
      const Value ct = builder->input(info.program().type(t.operand));
      const bool fits = info.program().type(leaves[0]) == ct.type();
      p.graph = builder->finish(
          std::vector{fits ? ct : reshape(ct, info.program().type(leaves[0]).shape)});
      return p;
    }
    const SubProgram sub = prologue_program(t, leaves);
    BoundProgram p{.reads = sub.constants};
    p.reads.insert(p.reads.end(), leaves.begin(), leaves.end());
    const std::vector<Value> in = inputs(*builder, p.reads);
    const Value ct = builder->input(info.program().type(t.operand));
    std::vector<bool> active(in.size(), false);
    for (std::size_t i = sub.constants.size(); i < in.size(); ++i) active[i] = true;
    const VjpResult r = vjp_values(sub.graph, active, in, std::vector<Tangent>{ct});
    std::vector<Value> out;
    for (std::size_t i = sub.constants.size(); i < in.size(); ++i)
      out.push_back(materialize(r.cotangents[i], in[i].type()));
    p.graph = builder->finish(out);
    return p;
  }

  // The nodes between the leaves and the operand.
  SubProgram prologue_program(const Trainable& t,
                              const std::vector<ValueId>& leaves) const {
    const GraphIndex& index = *graph_.module_info.index;
    std::set<std::size_t> nodes;
    std::vector<ValueId> open = {t.operand};
    std::set<ValueId> seen(leaves.begin(), leaves.end());
    for (std::size_t at = 0; at < open.size(); ++at) {
      const auto producer = index.producer(open[at]);
      if (!producer || !seen.insert(open[at]).second) continue;
      nodes.insert(*producer);
      for (ValueId v : index.node(*producer).inputs) open.push_back(v);
    }
    const std::vector<std::size_t> ordered(nodes.begin(), nodes.end());
    return extract(index, ordered, leaves, std::vector{t.operand},
                   [](Use) { return true; });
  }

  const ETraceGraph& graph_;
  const HiddenParamOpRelation& relation_;
  const HiddenGroup& group_;
  const Node& node_;
  const EtpRule& rule_;
  NodeTypes types_;
};

}  // namespace

std::vector<RelationPrograms> relation_programs(const ETraceGraph& g,
                                                PrologueRule prologue) {
  std::vector<RelationPrograms> out;
  for (std::size_t i = 0; i < g.hidden_param_op_relations.size(); ++i) {
    const HiddenParamOpRelation& r = g.hidden_param_op_relations[i];
    BT_REQUIRE_KIND(
        !r.control_flow_context, ErrorKind::not_implemented,
        "relation_programs: a weight inside a long scan is not supported here");
    if (r.kind != RelationKind::direct) continue;
    for (std::size_t k = 0; k < r.group_indices.size(); ++k) {
      const Writer w(g, r, r.group_indices[k]);
      RelationPrograms p{.relation = i, .group = r.group_indices[k]};
      p.traces = w.traces();
      p.df = w.df(k);
      p.roll = w.roll();
      p.solve = w.solve(prologue, p.leaves);
      out.push_back(std::move(p));
    }
  }
  return out;
}

std::vector<BoundProgram> transition_jacobians(const ETraceGraph& g) {
  std::vector<BoundProgram> out;
  for (const HiddenGroup& group : g.hidden_groups) {
    BoundProgram p{.reads = group.transition_constants};
    const std::vector<ValueId> entry = group.hidden_invars();
    p.reads.insert(p.reads.end(), entry.begin(), entry.end());
    p.graph = group.is_diagonal_recurrence ? group.diagonal_jacobian_program()
                                           : group.coupled_jacobian_program();
    out.push_back(std::move(p));
  }
  return out;
}

std::vector<ValueId> values_read(const std::vector<RelationPrograms>& relations,
                                 const std::vector<BoundProgram>& jacobians) {
  std::set<ValueId> seen;
  for (const RelationPrograms& r : relations)
    for (const BoundProgram* p : {&r.df, &r.roll, &r.solve})
      seen.insert(p->reads.begin(), p->reads.end());
  for (const BoundProgram& p : jacobians) seen.insert(p.reads.begin(), p.reads.end());
  return {seen.begin(), seen.end()};
}

}  // namespace braintrace
