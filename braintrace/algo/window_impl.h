// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps of a window as values, and the ways past credit finds its weights there.
#include <functional>

#include "braintrace/algo/window_local.h"

namespace braintrace {

// A value of every step: stacked on axis 0, or the same for all.
struct Timed {
  Value value;
  bool stacked = false;
};

// What a window knows of its steps once they have run.
class WindowValues {
 public:
  WindowValues(const CompiledRule& r, std::int64_t n) : rule(r), steps(n) {}

  const CompiledRule& rule;
  std::int64_t steps;
  bool fresh = false;        // traces at entry are zero
  Value calls, trace_steps;  // before the window
  std::vector<RuleInput> inputs;
  std::vector<Value> extra;  // the rule's inputs, stacked
  // Of the losses alone: adjoint per hidden state, signal and D per group.
  std::vector<Timed> adjoints, signals;
  std::vector<std::optional<Timed>> d;
  // Of what the losses read of old states; empty: nothing.
  std::vector<Timed> old_adjoints, old_signals;
  std::map<ValueId, Timed> reads;

  Value summed(const Timed& t) const;
  Value stacked(const Timed& t) const;
  Value first(const Timed& t) const;
  // Before each step.
  Timed step_numbers() const;
  Timed call_numbers() const;
  // A per-step program for all steps at once.
  std::vector<Timed> all_steps(const Graph& g, const std::vector<Timed>& in) const;
  // A program of one step written by `emit`, run for all steps at once.
  using Emit = std::function<std::vector<Value>(StepTerms&, const Values&)>;
  std::vector<Timed> for_all_steps(const std::vector<Timed>& more,
                                   const Emit& emit) const;
  StepTerms first_terms() const;
};

// Each moves `eps` from entry to exit and adds the past's share of the gradients.

// Any rule: its own program at every step.
void roll_step_by_step(const WindowValues& w, std::vector<Value>& eps,
                       LeafGradients& grads);
// Factored traces: all signals meet the small ones at once, then the data.
void meet_data(const WindowValues& w, const LearningRule& part, std::vector<Value>& eps,
               LeafGradients& grads);
// No traces inside: signals travel back through D.
void send_credit(const WindowValues& w, const LearningRule& part, bool carry,
                 std::vector<Value>& eps, LeafGradients& grads);
// history = deep: inside the window credit travels back through whole steps and is cut
// only on its way from step to step; `in`: [arguments | leaves | kept values].
void send_deep_credit(const WindowValues& w, const DeepProgram& deep,
                      const std::vector<Timed>& in, bool carry, std::vector<Value>& eps,
                      LeafGradients& grads);

// The traces after each step: carried to the exit and, when kept, handed out as they
// were after every step.
enum class Keep { exit, all };
ScanResult rolled(const WindowValues& w, const LearningRule& part,
                  const std::vector<Value>& eps, Keep keep);
// Traces of the credit form at the exit of the window; zero unless they go on.
std::vector<Value> at_exit(const WindowValues& w, const LearningRule& part, bool carry,
                           std::vector<Value> eps);

}  // namespace braintrace
