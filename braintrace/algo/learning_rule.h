// SPDX-License-Identifier: Apache-2.0
#pragma once
// A learning rule: how traces recur, and how a signal meets a trace. It writes IR into
// the program under construction and knows neither kernels nor ops. This is the seam for
// rules of your own (docs/adding_an_algorithm.md).
#include <memory>
#include <string>
#include <vector>

#include "braintrace/algo/step_terms.h"

namespace braintrace {

// One array a rule carries from step to step.
struct TraceSlot {
  std::string kind;  // "bwg", "kappa_filtered", "x", "df", "s_tilde", "theta_tilde",
                     // "dense", "key" (of random draws; lanes get keys of their own)
  std::string key;   // weight key of the op, "" for others
  std::int64_t relation = -1, group = -1;
  Type type;
  std::optional<Path> parameter = {};      // owner, when it is not a relation's
  std::optional<Array> initial = {};       // default: zeros
  std::vector<std::int64_t> readers = {};  // further relations that share it

  std::string name() const;  // "bwg/0/1/weight", unique within a rule
};

// A value the caller gives at every step (modulator, noise).
struct RuleInput {
  std::string name;
  Type type;
};

// Signals are (*varshape, num_state), one per group.
using GroupSignals = std::vector<Value>;

// How a rule runs over a window of steps with fixed weights (docs/etrace.md, Windows).
//   per_step: traces roll step by step
//   factored: traces are filtered data times small traces; the small ones roll step by
//             step, and what meets the data is filtered backwards in its place
//   credit:   no trace inside the window: signals travel back through D instead
enum class WindowForm { per_step, factored, credit };

// Cotangents of the outputs of ops, in an order of the rule's own: what meets the data of
// a step, and what meets the filtered data from before it.
struct MetData {
  std::vector<Value> now, older;
};
// Is the product of the newest step's own terms part of what is met?
enum class OwnTerms { counted, left_out };

// Matrices per group, (*varshape, M, M): from just after a step to the end of the window,
// for the traces and for their filtered twins. Absent: zero.
struct ToExit {
  std::vector<std::optional<Value>> plain, filtered;
  double kept = 0;  // what remains of the filtered traces themselves: kappa^steps
};
// D v and D^T v, block by block: (*varshape, M, M) and (*varshape, M).
Value times_blocks(const Value& d, const Value& v);
Value times_blocks_transposed(const Value& d, const Value& v);
// A B, block by block.
Value blocks_times_blocks(const Value& a, const Value& b);

class LearningRule {
 public:
  explicit LearningRule(const RuleContext& context) : context_(context) {}
  virtual ~LearningRule() = default;

  const RuleContext& context() const { return context_; }

  virtual std::vector<TraceSlot> traces() const = 0;
  // The traces after this step.
  virtual std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const = 0;
  // signal . eps: what a signal at step exit earns with the traces of that moment. Traces
  // that advance only when a gradient is taken are moved here.
  virtual LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                              std::vector<Value>& eps) const = 0;
  // The past's share of solve(): the instantaneous term of this step left out.
  virtual LeafGradients history(StepTerms& t, const GroupSignals& signals,
                                const std::vector<Value>& before,
                                const std::vector<Value>& after) const = 0;
  // Rules this one is made of; itself when it is one piece.
  virtual std::vector<const LearningRule*> parts() const { return {this}; }

  virtual WindowForm window_form() const { return WindowForm::per_step; }
  // Values a window form takes to be the same in all its steps; where they are not, the
  // window runs step by step.
  virtual std::vector<ValueId> fixed_in_windows() const { return {}; }

  // ---- windows, for the factored form: X_t = a X_{t-1} + x_t ------------------------
  virtual double data_filter() const { return 0; }  // a
  virtual MetData met(StepTerms& t, const GroupSignals& signals,
                      const std::vector<Value>& after, OwnTerms own) const;
  // What cotangents earn with the data of a step, per weight operand: `with_data` where
  // the gradient depends on the data, `now` elsewhere (a bias).
  virtual std::vector<Value> earned(StepTerms& t, const std::vector<Value>& now,
                                    const std::vector<Value>& with_data) const;
  // The same with the filtered data of these traces; nothing where there is no data.
  virtual std::vector<Value> earned_before(StepTerms& t, const std::vector<Value>& older,
                                           const std::vector<Value>& before) const;

  // ---- windows, for the credit form -------------------------------------------------
  // kappa of the filter, 0 without one.
  virtual double filter() const { return 0; }
  // What credit at the exits of one step earns through its instantaneous term, per weight
  // operand; and from operands to parameters (the factored form, too).
  virtual std::vector<Value> credit(StepTerms& t, const GroupSignals& r) const;
  virtual LeafGradients pull_back(StepTerms& t, const std::vector<Value>& operands) const;
  // Credit at the entry of a window meets the traces from before it.
  virtual LeafGradients entry(StepTerms& t, const GroupSignals& lambda,
                              const GroupSignals& filtered,
                              const std::vector<Value>& before) const;
  // True: traces that go on behind the window are rolled through it step by step instead
  // of moved() and arrived().
  virtual bool rolls_to_exit() const { return false; }
  // Traces moved from entry to exit, and one step's instantaneous term moved there.
  virtual std::vector<Value> moved(StepTerms& t, const ToExit& m,
                                   const std::vector<Value>& before) const;
  virtual std::vector<Value> arrived(StepTerms& t, const ToExit& m) const;

  // What the caller must give at every step, found in StepTerms::inputs.
  virtual std::vector<RuleInput> inputs() const { return {}; }
  // What the caller may give instead of what the rule would draw; found there when given.
  virtual std::vector<RuleInput> optional_inputs() const { return {}; }
  // Values of the step's program it reads beyond those of the context.
  virtual std::vector<ValueId> reads() const { return {}; }

 private:
  const RuleContext& context_;
};

// Several rules, each with its own relations, as one: traces side by side, gradients
// added.
class CompositeRule : public LearningRule {
 public:
  CompositeRule(const RuleContext& context,
                std::vector<std::unique_ptr<LearningRule>> parts);
  std::vector<TraceSlot> traces() const override;
  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override;
  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override;
  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>& after) const override;
  std::vector<const LearningRule*> parts() const override;
  std::vector<RuleInput> inputs() const override;
  std::vector<RuleInput> optional_inputs() const override;
  std::vector<ValueId> reads() const override;

 private:
  std::vector<std::unique_ptr<LearningRule>> parts_;
  std::vector<std::size_t> counts_;  // traces per part
};

// The rule of a config: the engine of its factorization, and the full sensitivity of
// dense relations.
std::unique_ptr<LearningRule> make_rule(const RuleContext& context);

}  // namespace braintrace
