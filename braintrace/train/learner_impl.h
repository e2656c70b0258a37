// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a learner holds: the compiled rule, its traces and counters, and programs that
// were traced before.
#include <map>
#include <set>

#include "braintrace/train/gradient_passes.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/optimizers.h"

namespace braintrace {

struct Learner::Impl {
  Impl(Module& m, Algorithm a, LearnerOptions o)
      : model(m), algorithm(std::move(a)), options(std::move(o)) {}

  Module& model;
  Algorithm algorithm;
  LearnerOptions options;
  std::vector<Array> examples;
  std::unique_ptr<CompiledRule> rule;
  // Windows of it are cheaper without traces at their end; and all can begin without.
  bool may_drop_traces = false, may_begin_empty = false;
  // Its traces are as small as what one step computes: shorter windows cost nothing.
  bool may_cut_windows = false;
  TracePacking packing;
  std::vector<Array> traces;  // as they are stored; one that is not contiguous is zero
  bool traces_are_zero = false;
  std::vector<Array> spare;  // room for large traces while they are zero
  std::int64_t calls = 0, trace_steps = 0;
  bool broken = false;  // a run failed while it held the only copy of the traces
  std::map<std::string, Array> rule_inputs;
  std::shared_ptr<ThreadPool> pool;  // of all programs, once there is one
  const std::shared_ptr<ThreadPool>& threads();
  std::optional<GradientPasses> gradient_passes;
  GradientPasses& passes();  // on those threads; made when first asked for
  std::map<std::uint64_t, std::shared_ptr<Executable>> programs;  // by structural hash
  // All of those. A handle may hold others, from before the learner changed.
  std::set<const Executable*> known;
  const Executable* last = nullptr;  // of the newest call
  struct StepPlan {
    std::vector<Type> types;
    std::int64_t window;
    std::shared_ptr<Executable> executable;
  };
  std::vector<StepPlan> step_plans;  // of steps without a gradient, by their arguments
  struct ModulatedPlan {
    std::vector<Type> types;
    std::shared_ptr<Executable> executable;
  };
  std::vector<ModulatedPlan> modulated_plans;  // of gradients without a loss
  // Gradients with an optimiser inside.
  struct UpdatePlan {
    const Executable* gradient;
    UpdateRule rule;
    std::shared_ptr<Executable> executable;
    std::vector<std::size_t> leaves;   // of the parameters, by gradient
    std::vector<Array*> moments = {};  // of the call that runs
  };
  std::vector<UpdatePlan> update_plans;
  std::vector<Array> cast_args;  // of the call that runs
  LossTracer* tracer = nullptr;  // while a loss is traced
  bool tracing_window = false;
  bool drops_modulators = false;  // a judge in the place of a modulatory learner
  std::int64_t epoch = 0;         // of the programs: another one after forget_programs()

  void compile(const std::vector<Array>& args);
  void rebatch(std::int64_t batch_size);
  void clear_traces();
  // Zeros from here on; the room of large traces is kept for the next sequence.
  void end_history();
  // Replaces the rule's traces. What does not repeat as it should is stored whole.
  void set_traces(const std::vector<Array>& of_rule);
  void forget_programs();
  // Float arguments take the element type of the compiled ones. Until the next call.
  std::span<const Array> cast(const std::vector<Array>& args);
  std::optional<std::int64_t> lanes() const;

  std::shared_ptr<Executable> evolve_program(std::span<const Array> args,
                                             std::int64_t window);
  std::shared_ptr<Executable> gradient_program(const std::vector<Type>& args,
                                               const TracedFn& fn,
                                               const std::vector<std::string>& weights,
                                               std::int64_t window,
                                               std::string_view caller);
  // UserError unless the rule is modulatory and the shape fits every group.
  void check_modulator(const Shape& shape, std::string_view caller) const;
  // A function without a loss, for modulatory rules: what the model gives, and zero.
  LossResult without_loss(const Values& xs, const std::optional<Value>& modulator);
  std::shared_ptr<Executable> modulated_program(std::span<const Array> args);
  // A loss of one step, traced for windows.
  struct TracedLoss {
    LossProgram program;
    std::uint64_t key = 0;    // of the program and the weights asked for
    double step_bytes = 0;    // of what one step computes
    double weight_bytes = 0;  // of all parameters
  };
  TracedLoss traced_loss(const std::vector<Type>& args, const TracedFn& fn,
                         const std::vector<std::string>& weights,
                         std::string_view caller);
  // Several steps of it as one program.
  struct WindowOptions {
    std::int64_t steps = 0;              // 0: as many as the bytes allow
    std::int64_t bytes = 0, length = 0;  // length: what is left of the sequence
    bool carry = true;     // traces go on after the sequence; inside they always do
    bool gradient = true;  // false: multi-step rules only
    bool signals = false;  // as StepRequest
  };
  std::shared_ptr<Executable> window_program(const TracedLoss& loss,
                                             const std::vector<std::string>& weights,
                                             const WindowOptions& window);
  bool is_bptt() const { return algorithm.engine == Engine::bptt; }
  bool goes_by_steps = false;  // BPTT, for whoever wants its states, not its gradient
  std::shared_ptr<Executable> traced(const std::vector<Type>& args, const TracedFn& fn,
                                     const StepRequest& request, std::string_view caller);
  LossProgram trace(const std::vector<Type>& args, const TracedFn& fn,
                    const SpliceOptions& options, std::string_view caller);
  std::shared_ptr<Executable> cached(std::uint64_t key,
                                     const std::function<StepProgram()>& make);
  // The program of a handle. UserError when it is another learner's or out of date.
  Executable& of_handle(const LossHandle& loss, const LearnerUse* use,
                        std::string_view caller) const;
  UpdatePlan& update_plan(const Executable& gradient, const UpdateRule& rule);
  // What some programs are given besides.
  struct Extras {
    std::span<const Array> signals = {};  // adjoints of the states at exit
    std::span<Array* const> moments = {};
    double rate = 0, count = 0;  // of the optimiser
  };
  // Runs a program (loss_weights: one per step of a gradient program). States, traces and
  // counters move on only when it succeeded; its results and gradients stay in `e`.
  void call(Executable& e, std::span<const Array> args,
            std::span<const double> loss_weights, std::string_view caller,
            const Extras& extras);
  void call(Executable& e, std::span<const Array> args,
            std::span<const double> loss_weights, std::string_view caller) {
    call(e, args, loss_weights, caller, {});
  }

 private:
  void check_relations() const;
  void bind(Executable& e, std::span<const Array> args,
            std::span<const double> loss_weights, std::string_view caller,
            const Extras& extras);
  void make_room(std::size_t trace);
  void lend_room(Executable& e);
  void commit(Executable& e, const Extras& extras);
  void commit_traces(Executable& e);
  void require_finite(Executable& e, std::string_view caller) const;
};

}  // namespace braintrace
