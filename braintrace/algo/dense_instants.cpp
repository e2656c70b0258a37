// SPDX-License-Identifier: Apache-2.0
// The instantaneous terms of dense relations: d(tail o op o prologue)/d leaf.
#include <algorithm>

#include "braintrace/algo/dense_rule.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/axis.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {

void DenseRule::join_tails() {
  const auto& relations = context().dense_relations();
  std::map<std::int64_t, std::vector<std::size_t>> by_group;
  for (std::size_t r = 0; r < relations.size(); ++r)
    by_group[relations[r].group().index].push_back(r);
  for (auto& [group, members] : by_group) {
    if (members.size() < 2) continue;
    std::vector<const RelationWriter*> writers;
    for (std::size_t r : members) writers.push_back(&relations[r]);
    if (auto tail = JointTail::of(context().graph(), writers))
      joint_.push_back({std::move(members), std::move(*tail)});
  }
}

// Forward mode takes fewer lanes where a leaf is small, but writes the way of each
// relation anew.
bool DenseRule::goes_back(const Joint& j, const Entry& e) const {
  const std::int64_t leaf =
      context().graph().module_info.program().type(e.leaf.id).size();
  return leaf * static_cast<std::int64_t>(j.relations.size()) >= j.tail.type().size();
}

void DenseRule::plan_sweeps() {
  std::vector<bool> joined(context().dense_relations().size(), false);
  for (std::size_t k = 0; k < joint_.size(); ++k) {
    Sweep apart{.apart = true, .joint = k}, together{.apart = false, .joint = k};
    for (std::size_t r : joint_[k].relations) joined[r] = true;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const auto& own = joint_[k].relations;
      if (std::find(own.begin(), own.end(), entries_[i].relation) == own.end()) continue;
      if (entries_[i].apart)
        apart.entries.push_back(i);
      else if (goes_back(joint_[k], entries_[i]))
        together.entries.push_back(i);
    }
    if (!apart.entries.empty()) sweeps_.push_back(std::move(apart));
    if (!together.entries.empty()) sweeps_.push_back(std::move(together));
  }
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].apart && !joined[entries_[i].relation])
      sweeps_.push_back({.apart = true, .joint = {}, .entries = {i}});
}

Value DenseRule::of_leaf(const LeafGradients& g, const Entry& e) const {
  const auto own = g.find(leaf_name(e.leaf));
  if (own != g.end()) return own->second;
  return zeros_of(context().graph().module_info.program().type(e.leaf.id));
}

Value DenseRule::instant(const StepTerms& t, const Entry& e, const Value* led) const {
  const Graph program = writer(e).leaf_program(e.leaf);
  Values given = inputs_of(t, e);
  const std::int64_t leaf = given.back().rank();
  const auto leaf_last = [&](const Value& s) {
    Ints order = iota_ints(s.rank());
    std::rotate(order.begin(), order.begin() + leaf, order.end());
    return transpose(s, order);
  };
  if (!led) return leaf_last(sensitivities(program, given, given.size() - 1)[0]);
  const auto builder = Builder::create();
  const Value p = builder->input(led->type());
  Values in;
  for (const Type& type : program.input_types()) in.push_back(builder->input(type));
  const Value out = times_blocks(p, inline_graph(program, in)[0]);
  const Graph whole = builder->finish(std::vector{out});
  given.insert(given.begin(), *led);
  return leaf_last(sensitivities(whole, given, given.size() - 1)[0]);
}

std::map<std::size_t, Value> DenseRule::back_to_ys(const StepValues& v, const Sweep& s,
                                                   const Value& ct) const {
  std::map<std::size_t, Value> out;
  if (s.joint) {
    const Joint& j = joint_[*s.joint];
    const Values cts = j.tail.back_to_ys(v, ct);
    for (std::size_t k = 0; k < cts.size(); ++k) out.emplace(j.relations[k], cts[k]);
    return out;
  }
  const Entry& e = entries_[s.entries[0]];
  out.emplace(e.relation, writer(e).back_to_y(v, ct));
  return out;
}

// Per entry: one leaf, or where samples are apart one leaf per sample.
Values DenseRule::back_to_entries(const StepTerms& t, const Sweep& s,
                                  const Value& ct) const {
  const std::map<std::size_t, Value> ct_y = back_to_ys(t.values(), s, ct);
  Values out;
  for (auto at = s.entries.begin(); at != s.entries.end();) {
    const std::size_t r = entries_[*at].relation;
    const auto end = std::find_if(
        at, s.entries.end(), [&](std::size_t i) { return entries_[i].relation != r; });
    const RelationWriter& w = context().dense_relations()[r];
    const auto of_entries = [&](const LeafGradients& g) {
      Values own;
      for (auto i = at; i != end; ++i) own.push_back(of_leaf(g, entries_[*i]));
      return own;
    };
    const Values more =
        s.apart ? on_lanes(w.weight_gradient_per_sample(t.values(), ct_y.at(r)),
                           [&](const Values& operands) {
                             return of_entries(w.pull_back(t.values(), operands,
                                                           PrologueRule::pull_back));
                           })
                : of_entries(w.back_to_leaves(t.values(), ct_y.at(r)));
    out.insert(out.end(), more.begin(), more.end());
    at = end;
  }
  return out;
}

void DenseRule::sweep(const StepTerms& t, const Sweep& s, const Value* led,
                      std::vector<Value>& out) const {
  const Entry& first = entries_[s.entries[0]];
  const HiddenGroup& g = writer(first).group();
  const Shape group = joined({g.varshape(), {g.num_state()}});
  const Shape lane = s.apart ? removed(group, 0) : group;
  const DType dtype = s.joint ? joint_[*s.joint].tail.type().dtype : first.type.dtype;
  const Values rows = on_lanes({unit_vectors({dtype, lane})}, [&](const Values& unit) {
    Value ct = broadcast_to(unit[0], group);
    if (led) ct = times_blocks_transposed(*led, ct);
    return back_to_entries(t, s, ct);
  });
  const auto inner = static_cast<std::int64_t>(lane.size());
  for (std::size_t k = 0; k < s.entries.size(); ++k) {
    const Entry& e = entries_[s.entries[k]];
    const Shape leaf(e.type.shape.begin() + static_cast<std::ptrdiff_t>(group.size()),
                     e.type.shape.end());
    if (!s.apart) {
      out[s.entries[k]] = reshape(rows[k], e.type.shape);
      continue;
    }
    // (*lane, samples, *leaf) -> (samples, *lane, *leaf)
    Ints order = iota_ints(e.type.rank());
    std::rotate(order.begin(), order.begin() + inner, order.begin() + inner + 1);
    out[s.entries[k]] =
        transpose(reshape(rows[k], joined({lane, {group[0]}, leaf})), order);
  }
}

std::vector<Value> DenseRule::instants(const StepTerms& t, const Led* led) const {
  std::vector<Value> out(entries_.size());
  std::vector<bool> done(entries_.size(), false);
  const auto led_of = [&](const Entry& e) -> const std::optional<Value>& {
    return (*led)[static_cast<std::size_t>(writer(e).group().index)];
  };
  for (std::size_t i = 0; led && i < entries_.size(); ++i) {
    if (led_of(entries_[i])) continue;
    out[i] = zeros_of(entries_[i].type);
    done[i] = true;
  }
  for (const Sweep& s : sweeps_) {
    if (done[s.entries[0]]) continue;
    sweep(t, s, led ? &*led_of(entries_[s.entries[0]]) : nullptr, out);
    for (std::size_t i : s.entries) done[i] = true;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!done[i]) out[i] = instant(t, entries_[i], led ? &*led_of(entries_[i]) : nullptr);
  return out;
}

}  // namespace braintrace
