// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/uoro_rule.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/etrace/position_graph.h"
#include "braintrace/ops/axis.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {
namespace {

// Per sample (axis 0) or over everything.
Value summed(const Value& v, bool per_sample) {
  Ints axes = iota_ints(v.rank());
  if (per_sample) axes.erase(axes.begin());
  return axes.empty() ? v : sum(v, {.axes = axes});
}

// A number for all, or one per sample, ready to meet a value.
Value fitted(const Value& r, const Value& v, bool per_sample) {
  return per_sample ? lanes_of_rank(r, v.rank()) : r;
}

// The samples of a group do not read each other from step to step.
bool samples_are_apart(const HiddenGroup& g) {
  const AxisAdjacency a = one_step_adjacency(g, SnapFallback::per_sample);
  const std::int64_t d = g.varshape()[0];
  for (std::int64_t p = 0; p < d; ++p)
    for (std::int64_t q = 0; q < d; ++q)
      if (p != q && a.axes[0][static_cast<std::size_t>(p * d + q)]) return false;
  return true;
}

std::string noise_name(std::int64_t group) { return fmt::format("nu/{}", group); }

}  // namespace

UoroRule::UoroRule(const RuleContext& context) : LearningRule(context) {
  for (std::size_t r = 0; r < context.relations().size(); ++r) {
    GroupEntry& e = entry_of(context.relations()[r].group());
    e.direct.push_back(r);
    add_leaves(e, context.relations()[r]);
  }
  for (std::size_t r = 0; r < context.dense_relations().size(); ++r) {
    GroupEntry& e = entry_of(context.dense_relations()[r].group());
    e.dense.push_back(r);
    add_leaves(e, context.dense_relations()[r]);
  }
  std::size_t next = 1;  // behind the key
  for (GroupEntry& e : entries_) {
    std::vector<const RelationWriter*> dense;
    for (std::size_t r : e.dense) dense.push_back(&context.dense_relations()[r]);
    if (dense.size() > 1) e.joint = JointTail::of(context.graph(), dense);
    e.first = next;
    next += 1 + e.leaves.size();
  }
}

UoroRule::GroupEntry& UoroRule::entry_of(const HiddenGroup& g) {
  for (GroupEntry& e : entries_)
    if (e.group == g.index) return e;
  BT_REQUIRE_KIND(!g.descent, ErrorKind::not_implemented,
                  fmt::format("UORO: group {} lives inside a long loop", g.index));
  GroupEntry e{.group = g.index};
  e.type = context().graph().module_info.program().type(g.members[0].in);
  e.type.shape = joined({g.varshape(), {g.num_state()}});
  e.per_sample = context().graph().options.batched &&
                 context().options().uoro_theta == UoroTheta::per_sample &&
                 samples_are_apart(g);
  entries_.push_back(std::move(e));
  return entries_.back();
}

void UoroRule::add_leaves(GroupEntry& e, const RelationWriter& r) const {
  for (const WeightVar& w : r.leaves()) {
    const bool known =
        std::any_of(e.leaves.begin(), e.leaves.end(),
                    [&](const WeightVar& other) { return other.id == w.id; });
    if (!known) e.leaves.push_back(w);
  }
}

std::vector<TraceSlot> UoroRule::traces() const {
  const std::uint64_t seed = context().algorithm().options.projection_key;
  const Array key = key_array(rng_key(seed));
  std::vector<TraceSlot> out = {{.kind = "key", .type = type_of(key), .initial = key}};
  for (const GroupEntry& e : entries_) {
    out.push_back({.kind = "s_tilde", .key = "s", .group = e.group, .type = e.type});
    for (const WeightVar& w : e.leaves) {
      Type t = context().graph().module_info.program().type(w.id);
      if (e.per_sample) t.shape = inserted(t.shape, 0, e.type.shape[0]);
      out.push_back({.kind = "theta_tilde",
                     .key = leaf_name(w),
                     .group = e.group,
                     .type = t,
                     .parameter = w.path});
    }
  }
  return out;
}

std::vector<RuleInput> UoroRule::optional_inputs() const {
  std::vector<RuleInput> out;
  for (const GroupEntry& e : entries_) out.push_back({noise_name(e.group), e.type});
  return out;
}

std::vector<ValueId> UoroRule::reads() const {
  std::set<ValueId> ids;
  for (const RelationWriter& r : context().dense_relations()) {
    const std::vector<ValueId> more = r.reads();
    ids.insert(more.begin(), more.end());
  }
  return {ids.begin(), ids.end()};
}

Value UoroRule::noise(const StepTerms& t, const GroupEntry& e, const Value& key) const {
  const auto given = t.inputs.find(noise_name(e.group));
  if (given != t.inputs.end()) return given->second;
  const Value own = random_fold_in(key, static_cast<int>(1 + e.group));
  const Value heads = random_bernoulli(own, scalar(0.5, e.type.dtype), e.type.shape);
  return astype(heads, e.type.dtype) * 2 - 1;
}

void UoroRule::add_direct(LeafGradients& sum_of, StepTerms& t, const GroupEntry& e,
                          std::size_t r, const Value& nu) const {
  const RelationWriter& w = context().relations()[r];
  const PrologueRule prologue = context().options().prologue;
  const Value ct = sum(nu * t.df(r), {.axes = {-1}});
  if (!e.per_sample) {
    add_to(sum_of, w.pull_back(t.values(), w.weight_gradient(t.values(), ct), prologue));
    return;
  }
  std::vector<std::string> names;
  const Values parts =
      on_lanes(w.weight_gradient_per_sample(t.values(), ct), [&](const Values& operands) {
        Values out;
        for (const auto& [leaf, g] : w.pull_back(t.values(), operands, prologue)) {
          names.push_back(leaf);
          out.push_back(g);
        }
        return out;
      });
  for (std::size_t i = 0; i < names.size(); ++i) add_to(sum_of, names[i], parts[i]);
}

void UoroRule::add_dense(LeafGradients& sum_of, const StepTerms& t, const GroupEntry& e,
                         std::size_t r, const Value& nu) const {
  const RelationWriter& w = context().dense_relations()[r];
  for (const WeightVar& leaf : w.leaves()) {
    const Graph program = w.leaf_program(leaf);
    Values in;
    for (ValueId v : w.reads()) in.push_back(t.values().at(v));
    in.push_back(t.values().at(leaf.id));
    std::vector<bool> active(in.size(), false);
    active.back() = true;
    // Reverse mode crosses no loop of unknown length.
    const bool forward = w.crosses_while() && is_float(in.back().dtype());
    const Value all = forward ? sensitivities(program, in, in.size() - 1)[0] : Value();
    auto back = [&](const Value& ct) {
      if (forward) return contracted_last(all, ct);
      const VjpResult r = vjp_values(program, active, in, std::vector<Tangent>{ct});
      return materialize(r.cotangents.back(), in.back().type());
    };
    if (!e.per_sample) {
      add_to(sum_of, leaf_name(leaf), back(nu));
      continue;
    }
    const Value unit = unit_vectors({nu.dtype(), {nu.dim(0)}});
    const Values parts = on_lanes({unit}, [&](const Values& one) {
      return Values{back(nu * lanes_of_rank(one[0], nu.rank()))};
    });
    add_to(sum_of, leaf_name(leaf), parts[0]);
  }
}

// All dense relations of a group by one sweep.
void UoroRule::add_joint(LeafGradients& sum_of, const StepTerms& t, const GroupEntry& e,
                         const Value& nu) const {
  std::vector<std::string> names;
  const auto back = [&](const Value& ct) {
    names.clear();
    const Values ct_y = e.joint->back_to_ys(t.values(), ct);
    Values out;
    for (std::size_t k = 0; k < ct_y.size(); ++k) {
      const RelationWriter& w = context().dense_relations()[e.dense[k]];
      for (const auto& [leaf, g] : w.back_to_leaves(t.values(), ct_y[k])) {
        names.push_back(leaf);
        out.push_back(g);
      }
    }
    return out;
  };
  Values parts;
  if (e.per_sample)
    parts = on_lanes({unit_vectors({nu.dtype(), {nu.dim(0)}})}, [&](const Values& one) {
      return back(nu * lanes_of_rank(one[0], nu.rank()));
    });
  else
    parts = back(nu);
  for (std::size_t i = 0; i < names.size(); ++i) add_to(sum_of, names[i], parts[i]);
}

LeafGradients UoroRule::projected(StepTerms& t, const GroupEntry& e,
                                  const Value& nu) const {
  LeafGradients out;
  for (std::size_t r : e.direct) add_direct(out, t, e, r, nu);
  if (e.joint) {
    add_joint(out, t, e, nu);
    return out;
  }
  for (std::size_t r : e.dense) add_dense(out, t, e, r, nu);
  return out;
}

std::vector<Value> UoroRule::roll(StepTerms& t, const std::vector<Value>& eps) const {
  const double tiny = context().algorithm().options.projection_eps;
  std::vector<Value> out = eps;
  out[0] = random_fold_in(eps[0], 0);
  for (const GroupEntry& e : entries_) {
    const bool apart = e.per_sample;
    auto norm = [&](const Values& parts) {
      Value total = summed(parts[0] * parts[0], apart);
      for (std::size_t i = 1; i < parts.size(); ++i)
        total = total + summed(parts[i] * parts[i], apart);
      return sqrt(total) + tiny;
    };
    const Value nu = noise(t, e, eps[0]);
    const Value ds = t.times_jacobian(e.group, eps[e.first]);
    const LeafGradients p = projected(t, e, nu);
    Values theta, moved;
    for (std::size_t i = 0; i < e.leaves.size(); ++i) {
      theta.push_back(eps[e.first + 1 + i]);
      const auto it = p.find(leaf_name(e.leaves[i]));
      moved.push_back(it == p.end() ? zeros_like(theta.back()) : it->second);
    }
    const Value r0 = sqrt(norm(theta) / norm({ds}));
    const Value r1 = sqrt(norm(moved) / norm({nu}));
    out[e.first] = ds * fitted(r0, ds, apart) + nu * fitted(r1, nu, apart);
    for (std::size_t i = 0; i < theta.size(); ++i)
      out[e.first + 1 + i] =
          theta[i] / fitted(r0, theta[i], apart) + moved[i] / fitted(r1, moved[i], apart);
  }
  return out;
}

void UoroRule::meet(LeafGradients& out, const GroupEntry& e, const Value& signal,
                    const Value& s, const std::vector<Value>& eps) const {
  const Value c = summed(signal * s, e.per_sample);
  for (std::size_t i = 0; i < e.leaves.size(); ++i) {
    const Value& theta = eps[e.first + 1 + i];
    const Value g =
        e.per_sample ? dot_general(c, theta, {.lhs_contract = {0}, .rhs_contract = {0}})
                     : theta * c;
    add_to(out, leaf_name(e.leaves[i]), g);
  }
}

LeafGradients UoroRule::solve(StepTerms&, const GroupSignals& signals,
                              std::vector<Value>& eps) const {
  LeafGradients out;
  for (const GroupEntry& e : entries_)
    meet(out, e, signals[static_cast<std::size_t>(e.group)], eps[e.first], eps);
  return out;
}

LeafGradients UoroRule::history(StepTerms& t, const GroupSignals& signals,
                                const std::vector<Value>& before,
                                const std::vector<Value>&) const {
  LeafGradients out;
  for (const GroupEntry& e : entries_)
    meet(out, e, signals[static_cast<std::size_t>(e.group)],
         t.times_jacobian(e.group, before[e.first]), before);
  return out;
}

}  // namespace braintrace
