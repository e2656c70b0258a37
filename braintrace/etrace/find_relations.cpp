// SPDX-License-Identifier: Apache-2.0
// Finds the relations of a step: one per trainable op that reaches a hidden state.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/control_flow.h"
#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/dense_policy.h"
#include "braintrace/etrace/evaluation.h"
#include "braintrace/etrace/live_values.h"
#include "braintrace/etrace/reachability.h"
#include "braintrace/etrace/relation.h"

namespace braintrace {
namespace {

using Kind = DiagnosticKind;
using Level = DiagnosticLevel;

// Groups and program must belong together.
void check_seam(const ModuleInfo& info, const std::vector<HiddenGroup>& groups) {
  for (std::size_t i = 0; i < groups.size(); ++i)
    BT_INVARIANT(groups[i].index == static_cast<std::int64_t>(i));
  for (const HiddenVar& h : info.hidden) {
    const auto homes =
        std::count_if(groups.begin(), groups.end(),
                      [&](const HiddenGroup& g) { return g.contains(h.path); });
    BT_REQUIRE(homes <= 1,
               fmt::format("find_hidden_param_op_relations: {} is in two groups",
                           to_string(h.path)));
    BT_REQUIRE(homes == 1,
               fmt::format("find_hidden_param_op_relations: {} is in no group; groups "
                           "and module info come from different compiles",
                           to_string(h.path)));
  }
  for (const HiddenGroup& g : groups)
    for (const HiddenVar& m : g.members)
      BT_REQUIRE(
          g.descent || info.hidden_at_output(m.out),
          fmt::format("find_hidden_param_op_relations: {} of group {} is no hidden "
                      "state of this program",
                      to_string(m.path), g.index));
}

class RelationFinder : public GraphEvaluation {
 public:
  RelationFinder(const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
                 const CompileOptions& options, Diagnostics& diagnostics)
      : info_(info),
        groups_(groups),
        options_(options),
        diagnostics_(diagnostics),
        reach_(info, groups, options),
        dense_(info, groups, options),
        live_(live_values(info)) {}

  std::vector<HiddenParamOpRelation> run() {
    evaluate(info_.program());
    std::vector<HiddenParamOpRelation> out;
    for (Found& f : found_)
      if (complete(f.relation, f.reach)) out.push_back(std::move(f.relation));
    return out;
  }

 private:
  struct Found {
    HiddenParamOpRelation relation;
    Reach reach;
  };

  void eval_node(std::size_t i, const Node& n) override {
    if (!n.op->etp) return;
    std::optional<HiddenParamOpRelation> r = skeleton(i, n);
    if (!r) return;
    Reach reach = reach_.reach(i);
    if (!reach.hidden_outs.empty()) dense_.count_direct(*r, reach.fed);
    found_.push_back({std::move(*r), std::move(reach)});
  }

  // Layout and parameters; nullopt when no parameter is behind any trainable input.
  std::optional<HiddenParamOpRelation> skeleton(std::size_t i, const Node& n) {
    const NodeTypes types = types_of(info_.program(), n);
    const Signature sig{types.in, types.out, n.attrs};
    HiddenParamOpRelation r{.primitive = node_name(info_.program(), n), .node = i};
    if (n.op->etp->x >= 0) r.x = n.inputs[static_cast<std::size_t>(n.op->etp->x)];
    r.y = n.outputs[0];
    bool outside = false;
    for (const WeightInput& w : n.op->etp->weights(sig))
      outside = add_trainable(r, n, w) || outside;
    if (!r.trainables.empty()) return r;
    if (outside) return std::nullopt;  // on record, parameter by parameter
    note(Kind::relation_excluded_no_paramstate, Level::warning, r,
         fmt::format("ETP primitive {}: no trainable input comes from a ParamState",
                     r.primitive));
    return std::nullopt;
  }

  // True when parameters behind this input are out of reach, outside the loop.
  bool add_trainable(HiddenParamOpRelation& r, const Node& n, const WeightInput& w) {
    Trainable t{.key = std::string(w.key),
                .operand = n.inputs[static_cast<std::size_t>(w.input)]};
    t.prologue = prologue_of(info_, t.operand);
    for (const Path& p : t.prologue.outside) note_made_outside(r, p);
    const bool outside = !t.prologue.outside.empty();
    if (t.prologue.parameters.empty() && outside) return true;
    if (t.prologue.parameters.empty()) {
      diagnostics_.note(
          {.kind = Kind::trainable_invar_not_paramstate,
           .level = Level::info,
           .message = fmt::format("input '{}' of {} comes from {}", t.key, r.primitive,
                                  made_by_trainable_op(t.operand)
                                      ? "another trainable op, not from a ParamState"
                                      : "no ParamState"),
           .primitive = r.primitive,
           .context = {{"key", python_string(t.key)}}});
      return false;
    }
    if (options_.weight_source == WeightSource::first_found)
      t.prologue.parameters.resize(1);
    const WeightVar& first = t.prologue.parameters.front();
    t.path = first.path;
    t.leaf = first.leaf;
    t.state = static_cast<ParamState*>(info_.step.find(first.path)->state);
    r.trainables.push_back(std::move(t));
    return outside;
  }

  bool made_by_trainable_op(ValueId operand) const {
    const auto producer = info_.index->producer(operand);
    return producer && is_structural_etp(info_.index->node(*producer));
  }

  void note_made_outside(const HiddenParamOpRelation& r, const Path& p) {
    CompilationRecord record = base_record(
        Kind::relation_excluded_weight_to_weight, Level::warning, r,
        fmt::format("ETP primitive {} in a loop (weight={}): its weight is made of data "
                    "as well, outside the loop and anew at every step; the loop keeps no "
                    "sensitivity to the parameter behind it.",
                    r.primitive, to_string(p)));
    record.weight_path = p;
    diagnostics_.note(std::move(record));
  }

  // Fills in groups and tails, or records why there are none.
  bool complete(HiddenParamOpRelation& r, const Reach& reach) {
    for (const Path& p : reach.shape_mismatch) note_shape_mismatch(r, p);
    const bool sound = options_.weight_source == WeightSource::all;
    if (sound && !is_live(r)) return detached(r);
    if (sound && !reach.hidden_outs.empty() && has_dynamic_prologue(r))
      return moving(r, reach);
    if (!reach.hidden_outs.empty()) return direct(r, reach);
    if (!reach.beyond.empty() && options_.weight_paths != WeightPaths::exclude) {
      if (const auto why = dense_.why_dense(r, reach.beyond))
        return dense(r, reach, *why);
    }
    return exclude(r, reach);
  }

  // Does a derivative lead from the step through the op to one of its parameters?
  bool is_live(const HiddenParamOpRelation& r) const {
    return live_[r.y.index] &&
           std::any_of(r.trainables.begin(), r.trainables.end(), [&](const Trainable& t) {
             return std::any_of(t.prologue.parameters.begin(),
                                t.prologue.parameters.end(),
                                [&](const WeightVar& w) { return live_[w.id.index]; });
           });
  }

  bool detached(const HiddenParamOpRelation& r) {
    note(Kind::relation_excluded_non_temporal, Level::warning, r,
         fmt::format("ETP primitive {} (weight={}): nothing that is differentiated "
                     "depends on its weight.",
                     r.primitive, to_string(r.path())));
    return false;
  }

  static bool has_dynamic_prologue(const HiddenParamOpRelation& r) {
    return std::any_of(r.trainables.begin(), r.trainables.end(),
                       [](const Trainable& t) { return t.prologue.dynamic; });
  }

  // A weight that is made anew at every step: traces of past weights say nothing of the
  // parameters, only their full sensitivity does.
  bool moving(HiddenParamOpRelation& r, const Reach& reach) {
    Reach all = reach;
    all.beyond.insert(reach.fed.begin(), reach.fed.end());
    if (const auto why = dense_.why_dense(r, all.beyond))
      return dense(r, all, "its weight changes from step to step; " + *why);
    note(Kind::relation_excluded_weight_to_weight, Level::warning, r,
         fmt::format("ETP primitive {} (weight={}): its weight changes from step to "
                     "step and the full sensitivity is not kept.",
                     r.primitive, to_string(r.path())));
    return false;
  }

  bool direct(HiddenParamOpRelation& r, const Reach& reach) {
    for (ValueId v : reach.hidden_outs) {
      const Path& p = info_.hidden_at_output(v)->path;
      const std::int64_t g = reach_.group_of(v);
      r.connected_hidden_paths.push_back(p);
      r.path_classification[p] = reach_.classify(r.node, reach, v);
      if (std::find(r.group_indices.begin(), r.group_indices.end(), g) ==
          r.group_indices.end())
        r.group_indices.push_back(g);
    }
    r.cuts = reach.cuts;
    add_tails(r);
    for (const Path& p : r.connected_hidden_paths)
      if (r.path_classification[p] == PathClass::mixed) note_partial(r, p);
    note_included(r);
    return true;
  }

  bool dense(HiddenParamOpRelation& r, const Reach& reach, const std::string& why) {
    r.kind = RelationKind::dense;
    r.reason = why;
    r.group_indices.assign(reach.beyond.begin(), reach.beyond.end());
    r.cuts = reach.cuts;
    for (std::int64_t g : r.group_indices)
      for (const HiddenVar& m : groups_[static_cast<std::size_t>(g)].members) {
        r.connected_hidden_paths.push_back(m.path);
        r.path_classification[m.path] = PathClass::all_through_other_etp;
      }
    add_tails(r);
    note(Kind::relation_dense, Level::info, r,
         fmt::format("{}({}) keeps its full sensitivity to groups {}: {}", r.primitive,
                     to_string(r.path()), python_tuple(r.group_indices), why));
    note_included(r);
    return true;
  }

  void add_tails(HiddenParamOpRelation& r) const {
    for (std::int64_t g : r.group_indices) {
      SubProgram sub = reach_.tail(r.node, g, r.kind);
      r.tails.push_back(std::move(sub.graph));
      r.tail_constants.push_back(std::move(sub.constants));
    }
  }

  bool exclude(const HiddenParamOpRelation& r, const Reach& reach) {
    const bool blocked = options_.exclusion_label == ExclusionLabel::met
                             ? !reach.blocking.empty()
                             : !reach.blocking.empty() && !reach.beyond.empty();
    if (blocked) {
      note_weight_to_weight(r, reach);
      return false;
    }
    const bool mixed =
        options_.weight_paths != WeightPaths::exclude && !reach.beyond.empty();
    note(Kind::relation_excluded_non_temporal, Level::warning, r,
         fmt::format("ETP primitive {} (weight={}) {}", r.primitive, to_string(r.path()),
                     mixed ? "reaches hidden states only through ops that mix "
                             "positions; its past is not traced."
                           : "has no connected hidden states. It will be treated as a "
                             "non-temporal parameter."));
    return false;
  }

  void note_weight_to_weight(const HiddenParamOpRelation& r, const Reach& reach) {
    std::string ops, paths;
    for (std::size_t b : reach.blocking) {
      const Node& n = info_.program().nodes()[b];
      const auto path = first_weight_path(info_, n);
      ops += (ops.empty() ? "" : ", ") + python_string(node_name(info_.program(), n));
      paths += (paths.empty() ? "" : ", ") + (path ? to_string(*path) : "None");
    }
    CompilationRecord record = base_record(
        Kind::relation_excluded_weight_to_weight, Level::warning, r,
        fmt::format(
            "ETP primitive {} (weight={}) reaches hidden states only through other "
            "ETP primitives ({}).",
            r.primitive, to_string(r.path()), ops));
    record.context = {{"blocking_primitives", "[" + ops + "]"},
                      {"blocking_weight_paths", "[" + paths + "]"}};
    diagnostics_.note(std::move(record));
  }

  void note_shape_mismatch(const HiddenParamOpRelation& r, const Path& p) {
    CompilationRecord record = base_record(
        Kind::relation_excluded_shape_mismatch, Level::warning, r,
        fmt::format("ETP primitive {} (weight={}): output shape {} does not "
                    "broadcast with hidden state {}",
                    r.primitive, to_string(r.path()),
                    to_string(info_.program().type(r.y).shape), to_string(p)));
    record.hidden_paths = {p};
    diagnostics_.note(std::move(record));
  }

  void note_partial(const HiddenParamOpRelation& r, const Path& p) {
    CompilationRecord record = base_record(
        Kind::relation_partial_path, Level::warning, r,
        fmt::format(
            "ETP primitive {} (weight={}) reaches {} directly and through other ETP "
            "primitives; only the direct path is traced.",
            r.primitive, to_string(r.path()), to_string(p)));
    record.hidden_paths = {p};
    diagnostics_.note(std::move(record));
  }

  void note_included(const HiddenParamOpRelation& r) {
    std::string classes;
    for (const Path& p : r.connected_hidden_paths)
      classes += fmt::format("{}{}: '{}'", classes.empty() ? "" : ", ", to_string(p),
                             to_string(r.path_classification.at(p)));
    CompilationRecord record =
        base_record(Kind::relation_included, Level::info, r,
                    fmt::format("{}({}) -> [{}]", r.primitive, to_string(r.path()),
                                fmt::join(r.group_indices, ", ")));
    record.hidden_paths = r.connected_hidden_paths;
    record.context = {{"hidden_group_indices", python_tuple(r.group_indices)},
                      {"path_classification", "{" + classes + "}"}};
    diagnostics_.note(record);
    for (const Path& p : further_parameters(r)) {
      record.weight_path = p;
      record.message = fmt::format("{} through {}({}) -> [{}]", to_string(p), r.primitive,
                                   to_string(r.path()), fmt::join(r.group_indices, ", "));
      diagnostics_.note(record);
    }
  }

  // Parameters behind its weights besides the one it is named by: w2 of w1 + w2, a bias
  // of its own. The reference names one.
  std::set<Path> further_parameters(const HiddenParamOpRelation& r) const {
    std::set<Path> out;
    if (options_.weight_source == WeightSource::first_found) return out;
    for (const Trainable& t : r.trainables)
      for (const WeightVar& w : t.prologue.parameters)
        if (w.path != r.path()) out.insert(w.path);
    return out;
  }

  static CompilationRecord base_record(Kind kind, Level level,
                                       const HiddenParamOpRelation& r,
                                       std::string message) {
    CompilationRecord record{.kind = kind, .level = level, .message = std::move(message)};
    record.primitive = r.primitive;
    if (!r.trainables.empty()) record.weight_path = r.path();
    return record;
  }
  void note(Kind kind, Level level, const HiddenParamOpRelation& r, std::string message) {
    diagnostics_.note(base_record(kind, level, r, std::move(message)));
  }

  const ModuleInfo& info_;
  const std::vector<HiddenGroup>& groups_;
  const CompileOptions& options_;
  Diagnostics& diagnostics_;
  ReachFinder reach_;
  DensePolicy dense_;
  std::vector<Found> found_;  // in program order
  const std::vector<bool> live_;
};

}  // namespace

std::vector<HiddenParamOpRelation> find_hidden_param_op_relations_from_minfo(
    const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
    const CompileOptions& options, Diagnostics& diagnostics) {
  check_seam(info, groups);
  check_etp_in_control_flow(info, diagnostics);
  return RelationFinder(info, groups, options, diagnostics).run();
}

std::vector<HiddenParamOpRelation> find_hidden_param_op_relations_from_module(
    Module& model, const std::vector<Array>& args, const CompileOptions& options) {
  Diagnostics d;
  const ModuleInfo info = extract_module_info(model, args, options, d);
  const auto groups = find_hidden_groups_from_minfo(info, options, d);
  return find_hidden_param_op_relations_from_minfo(info, groups, options, d);
}

}  // namespace braintrace
