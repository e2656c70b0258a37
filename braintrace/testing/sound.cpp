// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/sound.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "braintrace/etrace/exactness.h"
#include "braintrace/etrace/scan_descent.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/testing/cut_program.h"
#include "braintrace/testing/sound_impl.h"

namespace braintrace::testing {
namespace {

using internal::is_of;
using internal::SoundBench;

// Which states form groups, what becomes of the parameters, and who is traced to whom.
auto shape_of(const ETraceGraph& g) {
  std::set<std::vector<Path>> groups;
  for (const HiddenGroup& group : g.hidden_groups) groups.insert(group.hidden_paths());
  std::map<Path, Verdict> kinds;
  for (const ParameterVerdict& v : g.verdicts) kinds.emplace(v.path, v.verdict);
  std::set<std::tuple<Path, std::vector<Path>, RelationKind>> traced;
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations)
    for (const Trainable& t : r.trainables)
      for (const WeightVar& w : t.prologue.parameters)
        for (std::int64_t k : r.group_indices)
          traced.emplace(w.path,
                         g.hidden_groups[static_cast<std::size_t>(k)].hidden_paths(),
                         r.kind);
  return std::tuple(groups, kinds, traced);
}

class SoundCheck {
 public:
  SoundCheck(const std::string& name, const SoundSubject& s) : bench_(s) {
    bench_.result.name = name;
    const auto& groups = bench_.graph().hidden_groups;
    opened_ = std::any_of(groups.begin(), groups.end(),
                          [](const HiddenGroup& g) { return bool(g.descent); });
    if (!opened_) return;
    // Loops that were opened are judged by their unrolled twins, if these cut the same.
    CompileOptions o = bench_.graph().options;
    o.control_flow.scan_unroll_limit = 1 << 20;
    twin_ = compile_etrace_graph(*s.model, {s.inputs[0]}, o);
    judgeable_ = shape_of(*twin_) == shape_of(bench_.graph()) && !hands_out();
  }

  SoundResult run(const SoundOptions& o) {
    try {
      check(o);
    } catch (const UserError& e) {
      bench_.fail(fmt::format("compiled, but at the gradient: {}", e.what()));
    }
    return bench_.result;
  }

 private:
  void check(const SoundOptions& o) {
    check_verdicts();
    has_while_ = has_while(judged().module_info.program());
    for (std::int64_t t : o.steps) check_length(t, o.window);
    if (o.deep && !opened_ && !has_while_) check_deep(o.steps.back(), o.window);
  }

  // Does an opened loop hand out more than its states? The twin's readers of the last
  // sub-step see the new state, those of the loop do not.
  bool hands_out() const {
    const ModuleInfo& info = bench_.graph().module_info;
    for (const HiddenGroup& g : bench_.graph().hidden_groups) {
      if (!g.descent) continue;
      const auto outputs = info.index->node(g.descent->node).outputs;
      for (std::size_t k = g.descent->num_carry; k < outputs.size(); ++k)
        if (!info.index->uses(outputs[k]).empty()) return true;
    }
    return false;
  }

  const ETraceGraph& judged() const { return twin_ ? *twin_ : bench_.graph(); }

  StateDict judge(std::int64_t steps, const CutOptions& options = {}) const {
    bench_.start();
    return cut_bptt(judged(), bench_.sequence(steps), bench_.step_loss(), options);
  }

  void check_verdicts() {
    facts_ = parameter_exactness(bench_.graph());
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const ParameterVerdict& v = bench_.graph().verdicts[i];
      SoundCounts& c = bench_.result.counts;
      c.exact += facts_[i].exact;
      c.dense += v.verdict == Verdict::dense;
      c.local += v.verdict == Verdict::local && !facts_[i].exact;
      c.refused += v.verdict == Verdict::refused;
      c.approximate += v.verdict == Verdict::direct && !facts_[i].exact;
      if (v.reason.empty() || facts_[i].because.empty())
        bench_.fail("a verdict without a reason: " + to_slashes(v.path));
    }
    std::size_t parameters = bench_.graph().module_info.unused_params.size();
    for (const StepState& s : bench_.graph().module_info.step.states)
      parameters += s.kind == StateKind::param;
    if (parameters != facts_.size()) bench_.fail("verdicts are not complete");
  }

  bool is_exact(const std::string& leaf) const {
    return std::any_of(facts_.begin(), facts_.end(), [&](const ParameterExactness& f) {
      return f.exact && is_of(leaf, f.path);
    });
  }

  void check_length(std::int64_t steps, std::int64_t window) {
    Learner& l = bench_.d_rtrl();
    const StateDict single = bench_.online(l, steps, 1);
    for (const TraceView& t : l.etraces())
      for (double v : t.value.to_doubles())
        bench_.result.live = bench_.result.live || (steps > 1 && v != 0);
    if (judgeable_)
      bench_.compare(fmt::format("T={} against the judge", steps), single, judge(steps));
    if (!has_while_)
      bench_.compare(
          fmt::format("T={} against back-propagation", steps), single, bench_.bptt(steps),
          [&](const std::string& leaf) { return steps == 1 || is_exact(leaf); });
    if (steps > 1 && window > 0)
      bench_.compare(fmt::format("T={} in windows", steps),
                     bench_.online(l, steps, window), single);
  }

  void check_deep(std::int64_t steps, std::int64_t window) {
    Learner deep = bench_.make(D_RTRL{}, History::deep);
    bench_.compare(fmt::format("T={}, deep history", steps),
                   bench_.online(deep, steps, window),
                   judge(steps, {.history = History::deep, .window = window}));
  }

  SoundBench bench_;
  bool opened_ = false, judgeable_ = true, has_while_ = false;
  std::optional<ETraceGraph> twin_;
  std::vector<ParameterExactness> facts_;
};

}  // namespace

SoundCounts& SoundCounts::operator+=(const SoundCounts& o) {
  exact += o.exact;
  approximate += o.approximate;
  dense += o.dense;
  local += o.local;
  refused += o.refused;
  return *this;
}

SoundResult check_sound(const std::string& name, const SoundSubject& subject,
                        const SoundOptions& options) {
  return SoundCheck(name, subject).run(options);
}

std::string describe(const SoundResult& r) {
  const SoundCounts& c = r.counts;
  std::string line = fmt::format("{} {}  ", r.passed() ? "ok  " : "FAIL", r.name);
  if (!r.passed()) return line + r.failure;
  return line + fmt::format(
                    "{:.1g} of what is allowed; {} exact, {} approximate, {} "
                    "dense, {} local, {} refused",
                    r.worst, c.exact, c.approximate, c.dense, c.local, c.refused);
}

}  // namespace braintrace::testing
