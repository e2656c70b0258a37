// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/verdict.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/control_flow.h"
#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/live_values.h"
#include "braintrace/etrace/local_reason.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

using Kind = DiagnosticKind;

// The relation that decides about a parameter: the first direct one, else the first.
std::map<Path, const HiddenParamOpRelation*> owners(
    const std::vector<HiddenParamOpRelation>& relations) {
  std::map<Path, const HiddenParamOpRelation*> out;
  for (RelationKind kind : {RelationKind::direct, RelationKind::dense})
    for (const HiddenParamOpRelation& r : relations)
      for (const Trainable& t : r.trainables)
        for (const WeightVar& w : t.prologue.parameters)
          if (r.kind == kind) out.emplace(w.path, &r);
  return out;
}

// The first exclusion the relation pass recorded for this parameter.
std::string exclusion_reason(const Diagnostics& d, const Path& p) {
  for (const CompilationRecord& r : d.records())
    if (r.weight_path == p && (r.kind == Kind::relation_excluded_weight_to_weight ||
                               r.kind == Kind::relation_excluded_shape_mismatch ||
                               r.kind == Kind::relation_excluded_sliced_weight))
      return r.message;
  return "";
}

class VerdictMaker {
 public:
  VerdictMaker(const ModuleInfo& info,
               const std::vector<HiddenParamOpRelation>& relations,
               const CompileOptions& options, Diagnostics& diagnostics)
      : info_(info),
        owner_(owners(relations)),
        options_(options),
        diagnostics_(diagnostics),
        live_(live_values(info)) {
    for (const EnclosedWeight& w : enclosed_weights(info, options))
      (w.kind == "while" ? in_while_ : enclosed_).emplace(w.path, w.place);
    for (std::size_t i = 0; i < info.program().nodes().size(); ++i)
      any_while_ = any_while_ || is_while(i);
  }

  ParameterVerdict of(const Path& p) {
    if (const auto it = in_while_.find(p); it != in_while_.end())
      return refused(p, fmt::format("it is used inside a {}", it->second));
    const bool sound = options_.weight_paths != WeightPaths::exclude;
    const auto owner = owner_.find(p);
    if (owner != owner_.end() && (!sound || is_live(p))) return traced(p, *owner->second);
    const StepState& s = *info_.step.find(p);
    for (ValueId v : s.in)
      if (!is_float(info_.program().type(v).dtype))
        return refused(p, "it holds integers");
    if (sound && !is_live(p))
      return noted_local(p, "nothing that is differentiated depends on it");
    if (sound && any_while_ && reaches_exit(p, Loops::cross) &&
        !reaches_exit(p, Loops::avoid))
      return refused(p,
                     "it acts on the step only through a while loop, which reverse mode "
                     "cannot cross; use a scan of fixed length");
    return local(p);
  }

  // Nothing depends on it, so its gradient is zero whatever the rule.
  ParameterVerdict unused(const Path& p) {
    return noted_local(p, "the step does not use it");
  }

 private:
  static ParameterVerdict traced(const Path& p, const HiddenParamOpRelation& r) {
    if (r.kind == RelationKind::dense) return {p, Verdict::dense, r.reason};
    return {p, Verdict::direct,
            fmt::format("{} feeds groups {} position by position", r.primitive,
                        python_tuple(r.group_indices))};
  }

  ParameterVerdict local(const Path& p) {
    std::string why = exclusion_reason(diagnostics_, p);
    if (const auto it = enclosed_.find(p); why.empty() && it != enclosed_.end())
      why = fmt::format("it is used inside a {} that the compiler does not open",
                        it->second);
    if (why.empty()) why = why_local(info_, p);
    if (crosses_while(p)) why += "; what it does through a while loop is not credited";
    return noted_local(p, why);
  }

  ParameterVerdict noted_local(const Path& p, const std::string& why) {
    if (options_.weight_paths != WeightPaths::exclude)
      diagnostics_.note(
          {.kind = Kind::parameter_local,
           .level = DiagnosticLevel::info,
           .message = fmt::format("parameter {} gets the exact gradient of the "
                                  "current step only: {}",
                                  to_string(p), why),
           .weight_path = p});
    return {p, Verdict::local, why};
  }

  ParameterVerdict refused(const Path& p, const std::string& why) {
    const std::string message =
        fmt::format("parameter {} cannot be trained: {}", to_string(p), why);
    diagnostics_.note({.kind = Kind::parameter_refused,
                       .level = DiagnosticLevel::error,
                       .message = message,
                       .weight_path = p});
    BT_REQUIRE_KIND(options_.on_refused == OnRefused::freeze, ErrorKind::not_supported,
                    message + "; set on_refused = freeze to leave it as it is");
    return {p, Verdict::refused, why};
  }

  enum class Loops { cross, avoid };

  // A loop of unknown length, or what contains one.
  bool is_while(std::size_t node) const {
    return any_node(info_.index->node(node),
                    [](const Node& n) { return as_while(n).has_value(); });
  }

  // Everything whose derivative in the parameter is not zero by decree.
  std::set<ValueId> reached(const Path& p, Loops loops) const {
    const auto follow = [&](Use u) {
      return passes_tangent(*info_.index, u) &&
             (loops == Loops::cross || !is_while(u.node));
    };
    std::set<ValueId> out;
    for (ValueId v : info_.step.find(p)->in)
      for (ValueId r : reach_forward(*info_.index, v, follow)) out.insert(r);
    return out;
  }

  bool crosses_while(const Path& p) const {
    if (!any_while_) return false;
    const std::set<ValueId> all = reached(p, Loops::cross);
    return std::any_of(all.begin(), all.end(), [&](ValueId v) {
      const auto producer = info_.index->producer(v);
      return producer && is_while(*producer);
    });
  }

  // Outputs of the model and states at step exit; a parameter's own is none of them.
  bool reaches_exit(const Path& p, Loops loops) const {
    const std::set<ValueId> all = reached(p, loops);
    const auto out = info_.program().outputs();
    const auto own = info_.step.find(p)->in;
    return std::any_of(out.begin(), out.end(), [&](ValueId v) {
      return all.contains(v) && std::find(own.begin(), own.end(), v) == own.end();
    });
  }

  // May anything that is differentiated depend on it?
  bool is_live(const Path& p) const {
    const std::vector<ValueId>& in = info_.step.find(p)->in;
    return std::any_of(in.begin(), in.end(), [&](ValueId v) { return live_[v.index]; });
  }

  const ModuleInfo& info_;
  const std::map<Path, const HiddenParamOpRelation*> owner_;
  const CompileOptions& options_;
  Diagnostics& diagnostics_;
  std::map<Path, std::string> in_while_, enclosed_;  // path -> the first place
  bool any_while_ = false;
  const std::vector<bool> live_;
};

void note_cuts(const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
               const std::vector<HiddenParamOpRelation>& relations, Diagnostics& d) {
  for (const CutEntry& c : cut_set(info, groups, relations)) {
    std::vector<Path> paths = c.from;
    for (const Path& p : c.to)
      if (std::find(paths.begin(), paths.end(), p) == paths.end()) paths.push_back(p);
    d.note({.kind = Kind::history_cut,
            .level = DiagnosticLevel::info,
            .message = to_string(c),
            .primitive = c.op,
            .weight_path = c.weights.empty() ? c.weight_path : c.weights.front(),
            .hidden_paths = paths,
            .more_weights = c.weights,
            .context = {{"weights", path_list(c.weights)}}});
  }
  d.note_all(short_term_cuts(info));
}

}  // namespace

std::string_view to_string(Verdict v) {
  switch (v) {
    case Verdict::direct:
      return "direct";
    case Verdict::dense:
      return "dense";
    case Verdict::local:
      return "local";
    case Verdict::refused:
      return "refused";
  }
  return "";
}

std::vector<ParameterVerdict> parameter_verdicts(
    const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
    const std::vector<HiddenParamOpRelation>& relations, const CompileOptions& options,
    Diagnostics& diagnostics) {
  if (options.mixing == Mixing::cut && !options.include_recurrent_mixing)
    note_cuts(info, groups, relations, diagnostics);
  VerdictMaker maker(info, relations, options, diagnostics);
  std::vector<ParameterVerdict> out;
  for (const Path& p : info.param_paths()) out.push_back(maker.of(p));
  for (const Path& p : info.unused_params) out.push_back(maker.unused(p));
  return out;
}

}  // namespace braintrace
