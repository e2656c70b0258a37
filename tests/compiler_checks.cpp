// SPDX-License-Identifier: Apache-2.0
#include "compiler_checks.h"

#include <set>

#include "braintrace/etrace/scan_descent.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/close.h"
#include "braintrace/transforms/jacobian.h"

namespace compiler_property_test {

using namespace braintrace;
using namespace braintrace::testing;

void require(bool holds, const std::string& what) {
  if (!holds) throw CheckFailure(what);
}

namespace {

// The record that says what a verdict says.
bool has_record(const ETraceGraph& g, const ParameterVerdict& v) {
  using Kind = DiagnosticKind;
  const Kind kind = v.verdict == Verdict::local     ? Kind::parameter_local
                    : v.verdict == Verdict::refused ? Kind::parameter_refused
                                                    : Kind::relation_included;
  return !g.explain({.weight_path = v.path, .kind = kind}).empty();
}

}  // namespace

void check_verdicts(const ETraceGraph& g, const Module& m) {
  std::set<Path> wanted, got;
  for (const NamedState& n : collect_states(m))
    if (n.state->kind() == StateKind::param) wanted.insert(n.path);
  for (const StepState& s : g.module_info.step.states)
    if (s.kind == StateKind::param) wanted.insert(s.path);
  const bool sound = g.options.weight_paths != WeightPaths::exclude &&
                     g.options.weight_source == WeightSource::all;
  for (const ParameterVerdict& v : g.verdicts) {
    require(got.insert(v.path).second, "two verdicts for " + to_string(v.path));
    require(!v.reason.empty(), "no reason for the verdict of " + to_string(v.path));
    require(!sound || has_record(g, v),
            "no record for the verdict of " + to_string(v.path));
  }
  require(got == wanted, "verdicts and parameters differ");
  for (const CompilationRecord& r : g.diagnostics)
    require(!r.message.empty(), "a record without a message");
}

void check_graphs(const ETraceGraph& g) {
  verify(g.module_info.program());
  if (g.hidden_perturb) verify(g.hidden_perturb->program);
  for (const HiddenGroup& group : g.hidden_groups) verify(group.transition_program);
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    require(!r.group_indices.empty() && r.tails.size() == r.group_indices.size(),
            "a relation without groups, or a group without a tail");
    for (const Graph& tail : r.tails) verify(tail);
  }
}

namespace {

using Temps = std::map<ValueId, Array>;

std::vector<Array> values_of(const Temps& temps, const std::vector<ValueId>& ids) {
  std::vector<Array> out;
  for (ValueId v : ids) {
    require(temps.contains(v), "a value the graph needs is not handed out");
    out.push_back(temps.at(v));
  }
  return out;
}

void check_equal(const std::string& what, const Array& got, const Array& want) {
  check_close(what, got, want, value_tolerance(got.dtype()));
}

// The states the program itself gives, from the transition alone.
void check_transition(const HiddenGroup& g, const Temps& temps) {
  const std::vector<Array> out = g.transition(values_of(temps, g.hidden_invars()),
                                              values_of(temps, g.transition_constants));
  for (std::size_t i = 0; i < out.size(); ++i)
    check_equal("transition, " + to_string(g.members[i].path), out[i],
                temps.at(g.members[i].out));
}

// Members of an opened loop are values of its body; the step hands out the loop's
// results.
ValueId out_of(const ModuleInfo& info, const HiddenVar& member, const HiddenGroup& g) {
  return g.descent ? info.hidden_at(member.path)->out : member.out;
}

void check_tail(const ModuleInfo& info, const HiddenParamOpRelation& r, std::size_t k,
                const HiddenGroup& g, const Temps& temps) {
  std::vector<Array> in = values_of(temps, r.tail_constants[k]);
  in.push_back(values_of(temps, {r.y})[0]);
  const std::vector<Array> out = eval_graph(r.tails[k], in);
  for (std::size_t i = 0; i < out.size(); ++i)
    check_equal("tail of " + r.primitive + ", " + to_string(g.members[i].path), out[i],
                temps.at(out_of(info, g.members[i], g)));
}

// What an opened loop hands out, at one sub-step.
Temps body_values(const ScanDescentInfo& d, const Temps& temps, std::int64_t t) {
  Temps out;
  for (const auto& [inner, outer] : d.stacked) {
    const Array all = values_of(temps, {outer})[0];
    Shape shape(all.shape().begin() + 1, all.shape().end());
    const std::int64_t n = num_elements(shape);
    out[inner] = all.reshaped({d.length, n})
                     .sliced({t, 0}, {1, n}, {1, 1})
                     .contiguous()
                     .reshaped(shape);
  }
  return out;
}

void check_opened_loop(const HiddenGroup& g, const Temps& temps) {
  const Temps now = body_values(*g.descent, temps, 3);
  const Temps next = body_values(*g.descent, temps, 4);
  const std::vector<Array> out = g.transition(values_of(now, g.hidden_invars()),
                                              values_of(now, g.transition_constants));
  for (std::size_t i = 0; i < out.size(); ++i)
    check_equal("transition in a loop", out[i], next.at(g.members[i].in));
}

}  // namespace

void check_values(const ETraceGraph& g, const std::vector<Array>& args) {
  const ModuleInfo::CallResult call = g.module_info.jaxpr_call(args);
  for (const HiddenGroup& group : g.hidden_groups)
    group.descent ? check_opened_loop(group, call.temps)
                  : check_transition(group, call.temps);
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations)
    for (std::size_t k = 0; k < r.tails.size() && !r.control_flow_context; ++k)
      check_tail(g.module_info, r, k,
                 g.hidden_groups[static_cast<std::size_t>(r.group_indices[k])],
                 call.temps);
  if (!g.hidden_perturb) return;
  const auto same = g.call_hidden_perturb(args, g.hidden_perturb->init_perturb_data());
  for (const auto& [path, value] : call.etrace_vals)
    check_equal("perturbed by nothing, " + to_string(path), same.etrace_vals.at(path),
                value);
}

namespace {

void check_block_diagonal(const HiddenGroup& g, const Temps& temps) {
  const Array full = g.full_jacobian(values_of(temps, g.hidden_invars()),
                                     values_of(temps, g.transition_constants));
  const std::int64_t n = num_elements(g.varshape()), s = g.num_state();
  for (std::int64_t i = 0; i < full.size(); ++i) {
    const std::int64_t p = i / (s * n * s), q = i / s % n;
    require(p == q || full.at(i) == 0, "a transition mixes positions");
  }
}

// Entry of y that stands at a position: the same one, or that of a smaller y which is
// shared along leading axes.
void check_local_tail(const HiddenParamOpRelation& r, std::size_t k, const HiddenGroup& g,
                      const Temps& temps) {
  std::vector<Array> in = values_of(temps, r.tail_constants[k]);
  in.push_back(values_of(temps, {r.y})[0]);
  const std::int64_t positions = num_elements(g.varshape()), ys = in.back().size();
  if (ys == 0 || positions % ys != 0) return;
  for (std::size_t m = 0; m < g.members.size(); ++m) {
    const JacobianMode mode = JacobianMode::forward;
    const Array full = eval_graph(
        jacobian(r.tails[k], {.output = m, .input = in.size() - 1, .mode = mode}), in)[0];
    const std::int64_t states = g.members[m].num_state;
    for (std::int64_t i = 0; i < full.size(); ++i) {
      const std::int64_t p = i / (states * ys), q = i % ys;
      require(p % ys == q || full.at(i) == 0,
              "the direct tail of " + r.primitive + " mixes positions");
    }
  }
}

}  // namespace

void check_positions(const ETraceGraph& g, const std::vector<Array>& args) {
  const Temps temps = g.module_info.jaxpr_call(args).temps;
  for (const HiddenGroup& group : g.hidden_groups)
    if (!group.descent) check_block_diagonal(group, temps);
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    if (r.kind != RelationKind::direct || r.control_flow_context) continue;
    for (std::size_t k = 0; k < r.tails.size(); ++k)
      check_local_tail(
          r, k, g.hidden_groups[static_cast<std::size_t>(r.group_indices[k])], temps);
  }
}

}  // namespace compiler_property_test
