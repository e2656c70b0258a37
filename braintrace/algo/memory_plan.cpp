// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/memory_plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/etrace/scan_descent.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/anchor.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

std::string leaf_path(const WeightVar& w) {
  return to_slashes(w.key.empty() ? w.path : w.path.child(w.key));
}

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Shape group_shape(const HiddenGroup& g) { return joined(g.varshape(), {g.num_state()}); }

// One use of a trainable op by its types.
class OpView {
 public:
  explicit OpView(const ETraceGraph& g, const HiddenParamOpRelation& r)
      : relation_(r),
        info_(r.control_flow_context ? r.control_flow_context->body : g.module_info),
        node_(info_.program().nodes()[r.node]),
        rule_(*node_.op->etp),
        types_(types_of(info_.program(), node_)) {
    for (const Type& t : types_.in) inputs_.push_back(builder_->input(t));
  }

  const HiddenParamOpRelation& relation() const { return relation_; }
  bool has_data() const { return rule_.x >= 0; }
  std::int64_t num_slots() const {
    return static_cast<std::int64_t>(braintrace::num_slots(rule_, site()));
  }
  Type trace(std::int64_t slot, const HiddenGroup& g, std::int64_t width) const {
    Type t = rule_.trace({types_.in, types_.out, node_.attrs}, static_cast<int>(slot));
    if (!has_data()) t.shape = g.varshape();  // shared along leading axes
    t.shape.push_back(width);
    return t;
  }
  std::string key(std::int64_t slot) const {
    const auto weights = rule_.weights({types_.in, types_.out, node_.attrs});
    const auto i = static_cast<std::size_t>(slot);
    return i < weights.size() ? std::string(weights[i].key) : std::to_string(slot);
  }
  // What a factorized trace filters.
  Type x() const {
    if (rule_.x_repr) return rule_.x_repr(site()).type();
    return types_.in[static_cast<std::size_t>(rule_.x)];
  }
  DType dtype() const { return types_.out[0].dtype; }
  const Shape& y_shape() const { return types_.out[0].shape; }
  std::vector<std::pair<WeightVar, Type>> leaves() const {
    std::vector<std::pair<WeightVar, Type>> out;
    for (const Trainable& t : relation_.trainables)
      for (const WeightVar& w : t.prologue.parameters)
        out.emplace_back(w, info_.program().type(w.id));
    return out;
  }

 private:
  Site site() const { return {*node_.op, inputs_, {}, node_.attrs, node_.loc}; }

  const HiddenParamOpRelation& relation_;
  const ModuleInfo& info_;
  const Node& node_;
  const EtpRule& rule_;
  NodeTypes types_;
  std::shared_ptr<Builder> builder_ = Builder::create();
  std::vector<Value> inputs_;
};

class Planner {
 public:
  Planner(const ETraceGraph& g, const Algorithm& a, const MemoryPlanOptions& o)
      : graph_(g), algorithm_(a), options_(o) {
    plan_.algorithm = a.name;
  }

  MemoryPlan plan() {
    check();
    if (algorithm_.engine == Engine::random_projection)
      projections();
    else if (algorithm_.engine == Engine::exact_rtrl)
      full_sensitivities();
    else if (algorithm_.engine != Engine::bptt)
      relations();
    if (algorithm_.vjp_method == VjpMethod::multi_step) window();
    return std::move(plan_);
  }

 private:
  void check() const {
    BT_REQUIRE_KIND(
        algorithm_.engine != Engine::custom, ErrorKind::not_supported,
        fmt::format("memory_plan: {} is a rule of your own; its learner tells "
                    "what it keeps",
                    algorithm_.name));
    BT_REQUIRE(algorithm_.engine != Engine::bptt || options_.window >= 1,
               fmt::format("memory_plan: BPTT needs the window it keeps, got {}",
                           options_.window));
    const bool rolls_in_loops =
        algorithm_.engine == Engine::param_dim &&
        algorithm_.config.recurrence_scope() == RecurrenceScope::diagonal;
    for (const HiddenParamOpRelation& r : graph_.hidden_param_op_relations)
      BT_REQUIRE_KIND(
          !r.control_flow_context || rolls_in_loops || algorithm_.engine == Engine::bptt,
          ErrorKind::not_implemented,
          fmt::format("memory_plan: {} cannot roll its traces inside a long loop, as {} "
                      "needs",
                      algorithm_.name, to_slashes(r.path())));
  }

  const HiddenGroup& group(std::int64_t index) const {
    return graph_.hidden_groups[static_cast<std::size_t>(index)];
  }

  std::int64_t width(const HiddenGroup& g) const {
    if (!algorithm_.config.sparse_n()) return g.num_state();
    BT_REQUIRE(g.snap && g.snap->n == *algorithm_.config.sparse_n(),
               fmt::format("memory_plan: {} needs a graph compiled with sparse_n = {}",
                           algorithm_.name, *algorithm_.config.sparse_n()));
    return g.trace_state_width();
  }

  void add(MemoryItem item, const Type& t) {
    item.shape = t.shape;
    item.dtype = to_string(t.dtype);
    item.bytes = t.size() * static_cast<std::int64_t>(size_of(t.dtype));
    plan_.items.push_back(std::move(item));
  }

  void relations() {
    std::int64_t index = 0;
    for (const HiddenParamOpRelation& r : graph_.hidden_param_op_relations) {
      const OpView op(graph_, r);
      const bool per_param =
          algorithm_.engine == Engine::param_dim ||
          (algorithm_.engine == Engine::hybrid && stores_per_param(graph_, r));
      if (r.kind == RelationKind::dense)
        dense(op, index);
      else if (per_param)
        entries(op, index);
      else
        factors(op, index);
      ++index;
    }
  }

  void entries(const OpView& op, std::int64_t index) {
    const bool filtered = algorithm_.config.trace_filter() == TraceFilter::kappa;
    for (const char* kind : {"bwg", "kappa_filtered"}) {
      if (!filtered && kind != std::string_view("bwg")) continue;
      for (std::int64_t g : op.relation().group_indices)
        for (std::int64_t slot = 0; slot < op.num_slots(); ++slot) {
          Type t = op.trace(slot, group(g), width(group(g)));
          t.dtype = algorithm_.options.trace_dtype.value_or(t.dtype);
          add({.kind = kind,
               .owner = to_slashes(op.relation().path()),
               .key = op.key(slot),
               .relation = index,
               .group = g},
              t);
        }
    }
  }

  void factors(const OpView& op, std::int64_t index) {
    const std::string owner = to_slashes(op.relation().path());
    // Relations that read the same value share its filter.
    if (op.has_data() && filtered_x_.emplace(*op.relation().x, op.x().shape).second)
      add({.kind = "x", .owner = owner, .relation = index}, op.x());
    for (std::int64_t g : op.relation().group_indices)
      add({.kind = "df", .owner = owner, .relation = index, .group = g},
          {op.dtype(), group_shape(group(g))});
  }

  void dense(const OpView& op, std::int64_t index) {
    const bool filtered = algorithm_.config.trace_filter() == TraceFilter::kappa;
    const DType dtype = algorithm_.options.trace_dtype.value_or(op.dtype());
    for (const char* kind : {"dense", "dense_filtered"}) {
      if (!filtered && kind != std::string_view("dense")) continue;
      for (std::int64_t g : op.relation().group_indices)
        for (const auto& [leaf, type] : op.leaves())
          add({.kind = kind, .owner = leaf_path(leaf), .relation = index, .group = g},
              {dtype, joined(group_shape(group(g)), type.shape)});
    }
  }

  void projections() {
    std::set<std::int64_t> groups;
    std::set<std::pair<std::int64_t, std::string>> done;
    for (const HiddenParamOpRelation& r : graph_.hidden_param_op_relations) {
      const OpView op(graph_, r);
      for (std::int64_t g : r.group_indices) {
        if (groups.insert(g).second)
          add({.kind = "s_tilde",
               .owner = to_slashes(group(g).members[0].path),
               .group = g},
              {op.dtype(), group_shape(group(g))});
        for (const auto& [leaf, type] : op.leaves())
          if (done.emplace(g, leaf_path(leaf)).second)
            add({.kind = "theta_tilde", .owner = leaf_path(leaf), .group = g},
                {type.dtype, theta_shape(type.shape, group(g))});
      }
    }
  }

  Shape theta_shape(Shape leaf, const HiddenGroup& g) const {
    if (graph_.options.batched && !options_.shared_theta)
      leaf.insert(leaf.begin(), g.varshape().at(0));
    return leaf;
  }

  void full_sensitivities() {
    const std::set<ValueId> needed = behind_hidden_states();
    for (const WeightVar& w : graph_.module_info.weights) {
      const Type t = graph_.module_info.program().type(w.id);
      if (!needed.contains(w.id) || !is_float(t.dtype)) continue;
      for (const HiddenGroup& g : graph_.hidden_groups)
        add({.kind = "dense", .owner = leaf_path(w), .group = g.index},
            {t.dtype, joined(t.shape, group_shape(g))});
    }
  }

  // Every value that some hidden state at step exit depends on.
  std::set<ValueId> behind_hidden_states() const {
    std::set<ValueId> needed;
    for (const HiddenVar& h : graph_.module_info.hidden) needed.insert(h.out);
    const auto nodes = graph_.module_info.program().nodes();
    for (auto n = nodes.rbegin(); n != nodes.rend(); ++n)
      if (std::any_of(n->outputs.begin(), n->outputs.end(),
                      [&](ValueId v) { return needed.contains(v); }))
        needed.insert(n->inputs.begin(), n->inputs.end());
    return needed;
  }

  void window() {
    if (options_.window < 1) return;
    const std::int64_t kept =
        algorithm_.engine == Engine::bptt
            ? steps_per_segment(algorithm_.options.bptt_segments, options_.window)
            : options_.window;
    std::set<ValueId> seen;
    std::int64_t index = -1;
    for (const HiddenParamOpRelation& r : graph_.hidden_param_op_relations) {
      ++index;
      const OpView op(graph_, r);
      if (!op.has_data() || r.control_flow_context || !seen.insert(*r.x).second) continue;
      Type t = graph_.module_info.program().type(*r.x);
      t.shape.insert(t.shape.begin(), kept);
      add({.kind = "window", .owner = to_slashes(r.path()), .relation = index}, t);
    }
    states("window", kept);
    if (kept < options_.window) states("segment", (options_.window - 1) / kept + 1);
  }

  // Every hidden state, `times` over.
  void states(const char* kind, std::int64_t times) {
    for (const HiddenGroup& g : graph_.hidden_groups)
      for (const HiddenVar& h : g.members) {
        Type t =
            graph_.module_info.program().type(graph_.module_info.hidden_at(h.path)->in);
        t.shape.insert(t.shape.begin(), times);
        add({.kind = kind, .owner = to_slashes(h.path), .group = g.index}, t);
      }
  }

  const ETraceGraph& graph_;
  const Algorithm& algorithm_;
  const MemoryPlanOptions& options_;
  MemoryPlan plan_;
  std::set<std::pair<ValueId, Shape>> filtered_x_;
};

}  // namespace

MemoryPlan memory_plan(const ETraceGraph& graph, const Algorithm& algorithm,
                       const MemoryPlanOptions& options) {
  return Planner(graph, algorithm, options).plan();
}

bool stores_per_param(const ETraceGraph& graph, const HiddenParamOpRelation& relation) {
  const OpView op(graph, relation);
  if (!op.has_data()) return true;
  std::int64_t entries = 0, factors = op.x().size();
  for (std::int64_t i : relation.group_indices) {
    const HiddenGroup& g = graph.hidden_groups[static_cast<std::size_t>(i)];
    for (std::int64_t slot = 0; slot < op.num_slots(); ++slot)
      entries += op.trace(slot, g, g.num_state()).size();
    if (num_elements(op.y_shape()) != num_elements(g.varshape()))
      return true;  // no place for the second factor
    factors += num_elements(group_shape(g));
  }
  return factors > entries;
}

AlgorithmChoice choose_algorithm(const ETraceGraph& graph, std::int64_t budget_bytes,
                                 const ChooseOptions& options) {
  const std::vector<Algorithm> preferred = {
      D_RTRL{}, Hybrid{.decay_or_rank = options.decay_or_rank},
      pp_prop{.decay_or_rank = options.decay_or_rank}};
  AlgorithmChoice choice;
  for (const Algorithm& a : preferred) {
    try {
      choice.considered.push_back(memory_plan(graph, a));
    } catch (const UserError& e) {
      if (e.kind() != ErrorKind::not_implemented) throw;
      continue;  // this rule cannot serve this model
    }
    choice.algorithm = a;
    choice.plan = choice.considered.back();
    if (choice.plan.total_bytes() <= budget_bytes) return choice;
  }
  BT_INVARIANT(!choice.considered.empty());  // D_RTRL serves every model
  const auto smallest =
      std::min_element(choice.considered.begin(), choice.considered.end(),
                       [](const MemoryPlan& a, const MemoryPlan& b) {
                         return a.total_bytes() < b.total_bytes();
                       });
  throw UserError(
      fmt::format("choose_algorithm: no rule fits into {}; the smallest, {}, takes {}",
                  bytes_text(budget_bytes), smallest->algorithm,
                  bytes_text(smallest->total_bytes())));
}

}  // namespace braintrace
