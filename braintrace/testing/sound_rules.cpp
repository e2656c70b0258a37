// SPDX-License-Identifier: Apache-2.0
// Every rule at one step, and in windows.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/ops/region_view.h"
#include "braintrace/testing/cut_program.h"
#include "braintrace/testing/sound_impl.h"

namespace braintrace::testing {
namespace {

using internal::SoundBench;

std::vector<std::pair<std::string, Algorithm>> rules() {
  return {{"D_RTRL", D_RTRL{}},
          {"pp_prop", pp_prop{.decay_or_rank = 0.9}},
          {"EProp kappa", EProp{.kappa_filter_decay = 0.6}},
          {"OSTLRecurrent", OSTLRecurrent{}},
          {"OSTLFeedforward", OSTLFeedforward{.decay_or_rank = 0.5}},
          {"Hybrid", Hybrid{.decay_or_rank = 0.9}},
          {"SnAp 2", SnAp{.n = 2}},
          {"UORO single-step", UORO{.vjp_method = VjpMethod::single_step}},
          {"UORO", UORO{}},
          {"DNI", DNI{}},
          {"ThreeFactor", ThreeFactor{}},
          {"EProp random", EProp{.feedback = "random", .random_feedback_key = 5}}};
}

SyntheticGradient silent_future(const ETraceGraph& g) {
  std::map<std::int64_t, Shape> shapes;
  for (const HiddenGroup& group : g.hidden_groups) {
    shapes[group.index] = group.varshape();
    shapes[group.index].push_back(group.num_state());
  }
  return SyntheticGradient(shapes);
}

class RuleCheck {
 public:
  explicit RuleCheck(const std::string& name, const SoundSubject& s) : bench_(s) {
    bench_.result.name = name;
    loops_ = has_while(bench_.graph().module_info.program());
    const auto& groups = bench_.graph().hidden_groups;
    judged_ =
        !loops_ || std::none_of(groups.begin(), groups.end(),
                                [](const HiddenGroup& g) { return bool(g.descent); });
  }

  SoundResult run(std::int64_t steps, std::int64_t window) {
    if (!judged_) {
      bench_.result.notes.push_back(
          "a while loop and an opened one: nothing to compare with");
      return bench_.result;
    }
    bench_.start();
    // Reverse mode crosses no while loop; the judge goes forward there.
    newest_ = loops_ ? cut_bptt(bench_.graph(), bench_.sequence(1), bench_.step_loss())
                     : bench_.bptt(1);
    for (const auto& [name, rule] : rules()) {
      std::optional<Learner> l;
      try {
        l.emplace(bench_.make(rule));
      } catch (const UserError& e) {
        bench_.result.notes.push_back(fmt::format("{} refuses: {}", name, e.what()));
        continue;
      }
      try {
        check(name, rule, *l, steps, window);
      } catch (const UserError& e) {
        const bool reverse = rule.vjp_method == VjpMethod::multi_step;
        if (!reverse || !loops_)
          bench_.fail(
              fmt::format("{} compiled, but at the gradient: {}", name, e.what()));
      }
    }
    return bench_.result;
  }

 private:
  void check(const std::string& name, const Algorithm& rule, Learner& l,
             std::int64_t steps, std::int64_t window) {
    const LearningSignal signal = rule.config.learning_signal();
    if (signal == LearningSignal::bootstrapped)
      l.set_synthesizer(silent_future(l.graph()));
    if (signal == LearningSignal::modulatory) l.set_modulator(scalar(0.7, DType::f64));
    check_newest(name, l, signal);
    const bool single = rule.vjp_method == VjpMethod::single_step;
    if (!single || signal == LearningSignal::modulatory) return;
    bench_.compare(name + " in windows", bench_.online(l, steps, window),
                   bench_.online(l, steps, 1));
  }

  void check_newest(const std::string& name, Learner& l, LearningSignal signal) {
    const StateDict got = bench_.online(l, 1, 1);
    const bool own =
        signal == LearningSignal::modulatory || signal == LearningSignal::random_feedback;
    std::set<std::string> traced;
    if (own)
      for (const HiddenParamOpRelation& r : l.graph().hidden_param_op_relations)
        for (const Trainable& t : r.trainables)
          for (const WeightVar& w : t.prologue.parameters) traced.insert(leaf_name(w));
    bench_.compare(name + " at T=1", got, newest_,
                   [&](const std::string& leaf) { return !traced.contains(leaf); });
    if (!own || loops_) return;  // closed forms are of reverse mode
    if (const auto signals = published_signals(l, signal)) {
      bench_.start();
      bench_.compare(name + " at T=1, closed form", got,
                     signals_meet_instant(l.graph(), bench_.sequence(1)[0], *signals),
                     [&](const std::string& leaf) { return traced.contains(leaf); });
    }
  }

  // What the published rule sends to each group; nullopt where members of a group feed
  // each other, so that no closed form is at hand, or a loop was opened.
  std::optional<std::vector<Array>> published_signals(Learner& l,
                                                      LearningSignal signal) const {
    std::vector<Array> out;
    for (const HiddenGroup& g : l.graph().hidden_groups) {
      if (g.descent) return std::nullopt;
      if (signal == LearningSignal::random_feedback && g.members.size() > 1)
        return std::nullopt;
    }
    bench_.start();
    out = exit_adjoints(l.graph(), bench_.sequence(1)[0], bench_.step_loss());
    if (signal == LearningSignal::modulatory) {
      for (Array& a : out) a = (0.0 * Value(a) + 0.7).array();
      return out;
    }
    const GroupSignals sent =
        random_feedback(l.graph(), l.rule().feedback, {out.begin(), out.end()});
    for (std::size_t g = 0; g < out.size(); ++g) out[g] = sent[g].array();
    return out;
  }

  SoundBench bench_;
  bool loops_ = false, judged_ = true;
  StateDict newest_;
};

}  // namespace

SoundResult check_rules(const std::string& name, const SoundSubject& subject,
                        std::int64_t steps, std::int64_t window) {
  return RuleCheck(name, subject).run(steps, window);
}

}  // namespace braintrace::testing
