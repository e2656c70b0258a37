// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/relation_writer.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/weight_source.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/anchor.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

std::vector<Value> gather_values(const StepValues& v, const std::vector<ValueId>& ids) {
  std::vector<Value> out;
  for (ValueId id : ids) {
    const auto it = v.find(id);
    BT_INVARIANT(it != v.end());
    out.push_back(it->second);
  }
  return out;
}

// Wider traces are rolled by products instead of written-out sums.
constexpr std::int64_t kWrittenOut = 4;

std::int64_t count_slots(const Graph& program, const Node& node) {
  const auto builder = Builder::create();
  std::vector<Value> in;
  for (ValueId v : node.inputs) in.push_back(builder->input(program.type(v)));
  const Site s{*node.op, in, {}, node.attrs, node.loc};
  return static_cast<std::int64_t>(num_slots(*node.op->etp, s));
}

}  // namespace

Value state_slice(const Value& v, std::int64_t a) {
  return squeeze(slice_axis(v, -1, a, 1), -1);
}

Value contracted_last(const Value& sensitivity, const Value& s) {
  DotDims dims;
  for (std::int64_t k = 0; k < s.rank(); ++k) {
    dims.lhs_contract.push_back(sensitivity.rank() - s.rank() + k);
    dims.rhs_contract.push_back(k);
  }
  return dot_general(sensitivity, s, dims);
}

Value contracted_first(const Value& sensitivity, const Value& s) {
  const Ints axes = iota_ints(s.rank());
  return dot_general(sensitivity, s, {.lhs_contract = axes, .rhs_contract = axes});
}

void add_to(LeafGradients& sum, const std::string& leaf, const Value& gradient) {
  const auto [it, fresh] = sum.emplace(leaf, gradient);
  if (!fresh) it->second = it->second + gradient;
}

void add_to(LeafGradients& sum, const LeafGradients& more) {
  for (const auto& [leaf, g] : more) add_to(sum, leaf, g);
}

std::string leaf_name(const WeightVar& w) {
  return to_slashes(w.key.empty() ? w.path : w.path.child(w.key));
}

RelationWriter::RelationWriter(const ModuleInfo& info,
                               const std::vector<HiddenGroup>& groups,
                               const HiddenParamOpRelation& relation, std::size_t index,
                               std::size_t tail)
    : info_(info),
      relation_(relation),
      group_(groups[static_cast<std::size_t>(relation.group_indices[tail])]),
      index_(index),
      tail_(tail),
      node_(info.program().nodes()[relation.node]),
      rule_(*node_.op->etp),
      types_(types_of(info.program(), node_)),
      num_slots_(count_slots(info.program(), node_)) {}

std::vector<ValueId> RelationWriter::reads() const {
  std::set<ValueId> ids(node_.inputs.begin(), node_.inputs.end());
  ids.insert(relation_.tail_constants[tail_].begin(),
             relation_.tail_constants[tail_].end());
  ids.insert(relation_.y);
  for (ValueId v : weight_reads()) ids.insert(v);
  return {ids.begin(), ids.end()};
}

std::vector<ValueId> RelationWriter::weight_reads() const {
  std::set<ValueId> ids;
  for (std::size_t i = 0; i < node_.inputs.size(); ++i)
    if (static_cast<std::int64_t>(i) != rule_.x) ids.insert(node_.inputs[i]);
  for (const Trainable& t : relation_.trainables) {
    for (const WeightVar& w : t.prologue.parameters) ids.insert(w.id);
    const SubProgram sub = prologue_program(t);
    ids.insert(sub.constants.begin(), sub.constants.end());
  }
  return {ids.begin(), ids.end()};
}

std::string RelationWriter::slot_key(std::int64_t slot) const {
  if (rule_.effective) return slot == 0 ? "effective" : fmt::format("effective{}", slot);
  return std::string(rule_.weights(signature())[static_cast<std::size_t>(slot)].key);
}

Type RelationWriter::trace(std::int64_t slot, std::int64_t width) const {
  Type t = rule_.trace(signature(), static_cast<int>(slot));
  if (rule_.x < 0) t.shape = group_.varshape();  // shared along leading axes
  t.shape.push_back(width);
  return t;
}

Value RelationWriter::df(const StepValues& v) const {
  return df_of(relation_.tails[tail_], v);
}

Value RelationWriter::df_of(const Graph& tail, const StepValues& v) const {
  std::vector<ValueId> ids = relation_.tail_constants[tail_];
  ids.push_back(relation_.y);
  const std::vector<Value> in = gather_values(v, ids);
  std::vector<Tangent> tangents(in.size());
  tangents.back() = ones_like(in.back());
  const JvpResult r = jvp_values(tail, in, tangents);
  std::vector<Value> members;
  for (std::size_t i = 0; i < r.outs.size(); ++i)
    members.push_back(materialize(r.tangents[i], r.outs[i].type()));
  return group_.concat_hidden(members);
}

std::vector<Value> RelationWriter::node_inputs(const StepValues& v) const {
  return gather_values(v, node_.inputs);
}

Site RelationWriter::site(std::span<const Value> in) const {
  return {*node_.op, in.first(node_.inputs.size()), {}, node_.attrs, node_.loc};
}

// A group-shaped value (of one state) at the position each trace entry drives.
Value RelationWriter::on_trace(std::int64_t slot, const Value& v) const {
  if (rule_.x < 0) return v;
  const Type trace = rule_.trace(signature(), static_cast<int>(slot));
  const Value y = reshape(v, types_.out[0].shape);
  return anchor_broadcast(rule_.anchor(signature(), static_cast<int>(slot)), y,
                          trace.shape);
}

Value RelationWriter::instant(const StepValues& v, std::int64_t slot,
                              const Value& df) const {
  if (rule_.x < 0) return df;
  const std::vector<Value> in = node_inputs(v);
  std::vector<Value> states;
  for (std::int64_t a = 0; a < df.dim(-1); ++a)
    states.push_back(rule_.instant(site(in), static_cast<int>(slot),
                                   reshape(state_slice(df, a), types_.out[0].shape)));
  return stack(states, -1);
}

// m holds one matrix per position of the group.
Value RelationWriter::by_product(std::int64_t slot, const Value& m,
                                 const Value& eps) const {
  if (rule_.x >= 0) {
    Shape shape = types_.out[0].shape;
    shape.insert(shape.end(), {m.dim(-2), m.dim(-1)});
    return anchor_product(rule_.anchor(signature(), static_cast<int>(slot)),
                          reshape(m, shape), eps);
  }
  Anchor own;
  for (std::int64_t k = 0; k + 1 < eps.rank(); ++k) own.push_back({.y_axis = k});
  return anchor_product(own, m, eps);
}

Value RelationWriter::carried(std::int64_t slot, const Value& d, const Value& eps,
                              const std::vector<bool>& pattern) const {
  const std::int64_t width = eps.dim(-1);
  if (width > kWrittenOut) return by_product(slot, d, eps);
  std::vector<Value> states;
  for (std::int64_t a = 0; a < width; ++a) {
    const Value row = squeeze(slice_axis(d, -2, a, 1), -2);
    std::optional<Value> next;
    for (std::int64_t b = 0; b < width; ++b) {
      if (!pattern.empty() && !pattern[static_cast<std::size_t>(a * width + b)]) continue;
      const Value term = on_trace(slot, state_slice(row, b)) * state_slice(eps, b);
      next = next ? *next + term : term;
    }
    states.push_back(next ? *next : zeros_like(state_slice(eps, a)));
  }
  return stack(states, -1);
}

// A weight without data is shared along leading axes.
Value RelationWriter::without_lead(const Value& v) const {
  const Ints lead = iota_ints(v.rank() - types_.in[0].rank());
  return lead.empty() ? v : sum(v, {.axes = lead});
}

// Sum over states of signal times trace.
Value RelationWriter::meet(std::int64_t slot, const Value& signal,
                           const Value& eps) const {
  if (eps.dim(-1) > kWrittenOut)
    return squeeze(by_product(slot, expand_dims(signal, -2), eps), -1);
  Value total = on_trace(slot, state_slice(signal, 0)) * state_slice(eps, 0);
  for (std::int64_t a = 1; a < eps.dim(-1); ++a)
    total = total + on_trace(slot, state_slice(signal, a)) * state_slice(eps, a);
  return total;
}

std::vector<Value> RelationWriter::contracted(const StepValues& v, const Value& signal,
                                              const std::vector<Value>& eps) const {
  const std::vector<Value> in = node_inputs(v);
  std::vector<Value> slots;
  for (std::int64_t slot = 0; slot < num_slots_; ++slot) {
    const Value total = meet(slot, signal, eps[static_cast<std::size_t>(slot)]);
    if (rule_.x >= 0) {
      slots.push_back(contract_trace(rule_, site(in), static_cast<int>(slot), total));
      continue;
    }
    slots.push_back(without_lead(total));
  }
  return through_effective(in, slots);
}

// From effective weights to the op's weight inputs, in the rule's order.
std::vector<Value> RelationWriter::through_effective(
    std::span<const Value> in, const std::vector<Value>& slots) const {
  if (!rule_.effective) return slots;
  const auto builder = Builder::create();
  std::vector<Value> raw;
  for (const Type& t : types_.in) raw.push_back(builder->input(t));
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

std::vector<Value> RelationWriter::weight_gradient(const StepValues& v, const Value& ct_y,
                                                   const std::optional<Value>& x) const {
  std::vector<Value> in = node_inputs(v);
  if (rule_.x < 0) return through_effective(in, {without_lead(ct_y)});
  const Value ct = reshape(ct_y, types_.out[0].shape);
  if (x && rule_.x_repr) {
    // By definition the op is the product of what stands for its data with its weight.
    const Ints lead = iota_ints(ct.rank() - 1);
    return {dot_general(*x, ct, {.lhs_contract = lead, .rhs_contract = lead})};
  }
  if (x) in[static_cast<std::size_t>(rule_.x)] = *x;
  return op_gradient(in, ct);
}

std::vector<Value> RelationWriter::op_gradient(const std::vector<Value>& in,
                                               const Value& ct) const {
  const auto builder = Builder::create();
  std::vector<Value> args;
  for (const Value& a : in) args.push_back(builder->input(a.type()));
  const Graph op =
      builder->finish(builder->record(*node_.op, args, node_.attrs, node_.loc));
  std::vector<bool> active(in.size(), false);
  const auto weights = rule_.weights(signature());
  for (const WeightInput& w : weights) active[static_cast<std::size_t>(w.input)] = true;
  const VjpResult r = vjp_values(op, active, in, std::vector<Tangent>{ct});
  std::vector<Value> out;
  for (const WeightInput& w : weights) {
    const auto i = static_cast<std::size_t>(w.input);
    out.push_back(materialize(r.cotangents[i], types_.in[i]));
  }
  return out;
}

std::size_t RelationWriter::weight_position(const std::string& key) const {
  const auto weights = rule_.weights(signature());
  const auto it = std::find_if(weights.begin(), weights.end(),
                               [&](const WeightInput& w) { return w.key == key; });
  BT_INVARIANT(it != weights.end());
  return static_cast<std::size_t>(it - weights.begin());
}

bool RelationWriter::is_hook(const std::string& key) const {
  const Attr* hooks = node_.attrs.find("hooks");
  return hooks && std::get<std::string>(*hooks).find(key) != std::string::npos;
}

LeafGradients RelationWriter::pull_back(const StepValues& v,
                                        const std::vector<Value>& operands,
                                        PrologueRule rule) const {
  LeafGradients out;
  for (const Trainable& t : relation_.trainables) {
    const std::vector<Value> g =
        leaf_gradients(v, t, operands[weight_position(t.key)], rule);
    for (std::size_t i = 0; i < g.size(); ++i)
      add_to(out, leaf_name(t.prologue.parameters[i]), g[i]);
  }
  return out;
}

std::vector<Value> RelationWriter::leaf_gradients(const StepValues& v, const Trainable& t,
                                                  const Value& ct,
                                                  PrologueRule rule) const {
  std::vector<ValueId> leaves;
  for (const WeightVar& w : t.prologue.parameters) leaves.push_back(w.id);
  const bool drop = rule == PrologueRule::drop && !is_hook(t.key);
  if (t.prologue.is_identity() || drop) {
    const Type& leaf = info_.program().type(leaves[0]);
    return {leaf == ct.type() ? ct : reshape(ct, leaf.shape)};
  }
  const SubProgram sub = prologue_program(t);
  std::vector<ValueId> ids = sub.constants;
  ids.insert(ids.end(), leaves.begin(), leaves.end());
  const std::vector<Value> in = gather_values(v, ids);
  std::vector<bool> active(in.size(), false);
  for (std::size_t i = sub.constants.size(); i < in.size(); ++i) active[i] = true;
  const VjpResult r = vjp_values(sub.graph, active, in, std::vector<Tangent>{ct});
  std::vector<Value> out;
  for (std::size_t i = sub.constants.size(); i < in.size(); ++i)
    out.push_back(materialize(r.cotangents[i], in[i].type()));
  return out;
}

// The nodes between the leaves and the operand.
SubProgram RelationWriter::prologue_program(const Trainable& t) const {
  const GraphIndex& index = *info_.index;
  std::vector<ValueId> leaves;
  for (const WeightVar& w : t.prologue.parameters) leaves.push_back(w.id);
  std::set<std::size_t> nodes;
  std::vector<ValueId> open = {t.operand};
  std::set<ValueId> seen(leaves.begin(), leaves.end());
  for (std::size_t at = 0; at < open.size(); ++at) {
    const auto producer = index.producer(open[at]);
    if (!producer || !seen.insert(open[at]).second) continue;
    if (ends_prologue(index.node(*producer))) continue;
    nodes.insert(*producer);
    for (ValueId v : index.node(*producer).inputs) open.push_back(v);
  }
  const std::vector<std::size_t> ordered(nodes.begin(), nodes.end());
  return extract(index, ordered, leaves, std::vector{t.operand},
                 [](Use) { return true; });
}

std::optional<Type> RelationWriter::x_type() const {
  if (rule_.x < 0) return std::nullopt;
  if (!rule_.x_repr) return types_.in[static_cast<std::size_t>(rule_.x)];
  const auto builder = Builder::create();
  std::vector<Value> in;
  for (const Type& t : types_.in) in.push_back(builder->input(t));
  return rule_.x_repr(site(in)).type();
}

std::optional<Value> RelationWriter::x_representation(const StepValues& v) const {
  if (rule_.x < 0) return std::nullopt;
  const std::vector<Value> in = node_inputs(v);
  if (rule_.x_repr) return rule_.x_repr(site(in));
  return in[static_cast<std::size_t>(rule_.x)];
}

}  // namespace braintrace
