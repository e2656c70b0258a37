// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled model that learns online: it runs the step, moves the eligibility traces and
// gives gradients, step by step, with memory that does not grow with the sequence.
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braintrace/algo/input_data.h"
#include "braintrace/algo/trace_view.h"
#include "braintrace/base/certificate.h"
#include "braintrace/etrace/report.h"
#include "braintrace/train/executable.h"
#include "braintrace/train/learner_use.h"
#include "braintrace/train/sequence.h"

namespace braintrace {

struct LearnerOptions {
  std::optional<std::int64_t> batch_size = {};  // axis 0 of states and inputs
  std::optional<std::uint64_t> seed = {};
  std::optional<DType> dtype = {};  // default: what the parameters have, else f32
  int verbose = 0;                  // 1: report, 2: more; written to `out`
  std::ostream* out = nullptr;      // default: std::cout
  bool vmap = false;                // one lane compiled, mapped over batch_size lanes
  CompileOptions graph = {};
  LearningOptions learning = {};
  ExecutorKind executor = ExecutorKind::plan;
  int threads = 0;       // 0: as the environment says
  bool profile = false;  // Learner::last_plan() then says how long each kernel took
  // Traces of at least so many bytes store states that repeat along an axis once.
  std::int64_t compact_bytes = 1 << 18;
};
// The same with every difference from braintrace 0.2.6 switched off.
LearnerOptions compat(LearnerOptions base);

// One trace array and what it belongs to.
struct TraceView {
  TraceSlot slot;
  Array value;
};

// A loss function traced once, for use at every step (Learner::trace_loss).
class LossHandle {
 public:
  LossHandle(std::shared_ptr<Executable> e, std::shared_ptr<const LearnerUse> owner)
      : executable_(std::move(e)), owner_(std::move(owner)) {}
  const Graph& graph() const { return program().graph; }
  const StepProgram& program() const { return executable_->of_rule(); }

 private:
  friend class Learner;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<const LearnerUse> owner_;
};

struct StepGradient {
  double loss = 0;                       // not weighted
  std::span<const Array> results;        // what the function returned besides the loss
  const StateDict* gradients = nullptr;  // by slash path; all valid until the next call
};

class PreparedGrad;
class Optimizer;

// One thread at a time: another one that calls meanwhile gets a UserError of kind
// runtime.
class Learner {
 public:
  // Initialises the model's states (values are set afterwards, by path) and compiles.
  // UserError: as DESIGN says; kind compilation when no parameter has a relation.
  Learner(Module& model, const Algorithm& algorithm, const std::vector<Array>& examples,
          const LearnerOptions& options = {});
  ~Learner();
  Learner(Learner&&) noexcept;

  // Keeps other threads out of several calls in a row, as long as it lives.
  LearnerUse::Claim claim(std::string_view caller) const { return {*use_, caller}; }

  // The threads of all its programs, for work between its calls (Optimizer::attach).
  std::shared_ptr<ThreadPool> threads() const;

  // Inside a traced loss: the compiled step at this place. Outside: one step; states and
  // traces move on.
  Value operator()(const Value& x);
  Values operator()(const Values& xs);
  Values operator()(const MultiStepData& xs);  // outputs stacked over time
  Values operator()(const SingleStepData& xs) { return (*this)(xs.values); }
  Value update(const Value& x) { return (*this)(x); }
  // The same with a third factor for this step alone, in place of the standing one (see
  // set_modulator). Inside a traced loss it may depend on the loss's arguments.
  Value update(const Value& x, const Value& modulator);
  Values update(const Values& xs, const Value& modulator);

  // Streaming: traced once, then called at every step. Weights may change in between.
  LossHandle trace_loss(const TracedFn& loss, const std::vector<Array>& examples);
  StepGradient step_grad(const std::vector<Array>& args, LossHandle& loss,
                         double weight = 1);
  // One step that moves the parameters by its gradient, at once: what
  // optimizer.update(*step_grad(args, loss).gradients) does, but gradients are stored
  // nowhere (none in the result). Parameters without a gradient stay. An optimiser that
  // clips, or a learner that checks gradients for being finite, takes both steps.
  StepGradient step_update(const std::vector<Array>& args, LossHandle& loss,
                           Optimizer& optimizer, double weight = 1);
  // Modulatory rules need no loss: the modulator alone is the signal. `results` are the
  // outputs of the model; parameters without a trace have gradient zero.
  StepGradient modulated_grad(const std::vector<Array>& args, const Array& modulator);
  // No gradient. The outputs are valid until the next call.
  std::span<const Array> step(const std::vector<Array>& args);

  // The gradient over a sequence, taken step by step (train/sequence.h). Without a loss
  // (an empty function) when the options hold modulators.
  GradResult etrace_grad(const std::vector<Array>& sequences, const TracedFn& loss,
                         const GradOptions& options = {});
  GradResult etrace_grad(const SequenceSource& source, const TracedFn& loss,
                         const GradOptions& options = {});
  GradResult etrace_grad(const Array& xs, const Array& ys, const PairLoss& loss,
                         const GradOptions& options = {});
  // For calls with one loss and sequences of one shape: see train/prepared_grad.h.
  PreparedGrad prepare(TracedFn loss, const std::vector<Array>& sequences,
                       const GradOptions& options = {});
  PreparedGrad prepare(PairLoss loss, const Array& xs, const Array& ys,
                       const GradOptions& options = {});
  // The same steps without a loss. Outputs only when asked for.
  std::vector<Array> etrace_evolve(const std::vector<Array>& sequences,
                                   const EvolveOptions& options = {});
  void etrace_evolve(const SequenceSource& source);

  // The online gradient of these sequences beside that of back-propagation through time,
  // parameter by parameter, and signs of life (docs/etrace.md, Certificates). From the
  // present states, with fresh traces; states, traces and counters are as before when it
  // returns. `window`: as GradOptions; under vmap 1, but for BPTT. Memory grows with the
  // length.
  CertificateData certificate(const std::vector<Array>& sequences, const TracedFn& loss,
                              std::int64_t window = 1);
  CertificateData certificate(const Array& xs, const Array& ys, const PairLoss& loss,
                              std::int64_t window = 1);

  // Traces as at compile time: zero, filters and noise included.
  void init_etrace_state();
  // Counters and traces to zero. With a batch size: traces (and states of another batch)
  // for that many samples; UserError on a learner compiled without one. Hidden states of
  // the same batch are not touched.
  void reset_state(std::optional<std::int64_t> batch_size = {});
  // Traces of the ops that read the parameter, in the space of their parameters.
  // UserError when there is none.
  std::vector<TraceView> get_etrace_of(const Path& parameter) const;
  std::vector<TraceView> etraces(TraceSpace space = TraceSpace::effective) const;
  void set_etrace(const std::string& slot_name, const Array& value);

  std::int64_t running_index() const;  // calls so far
  std::int64_t trace_steps() const;    // steps so far
  void set_counters(std::int64_t calls, std::int64_t trace_steps);

  // A third factor for modulatory rules: kept until replaced; nullopt removes it. One
  // number, one per position or sample, or what broadcasts to (*varshape, num_state) of
  // every group, UserError otherwise; under vmap behind the lane axis, unless it is one
  // number.
  void set_modulator(const std::optional<Array>& modulator);
  std::optional<Array> modulator() const;  // the standing one
  // Injected noise and other per-step inputs of the rule, by name. UserError when the
  // rule has no such input.
  void set_rule_input(const std::string& name, const Array& value);
  // For random feedback. UserError for other rules and for groups without a relation.
  void set_feedback(FeedbackMatrices matrices);
  // For DNI. UserError unless every group of the model has a predictor of its shape.
  void set_synthesizer(SyntheticGradient synthesizer);

  // The states the step uses, in retrieved order: all, or those of one kind.
  std::vector<NamedState> path_to_states() const;
  std::vector<NamedState> param_states() const;
  std::vector<NamedState> hidden_states() const;
  std::vector<NamedState> other_states() const;  // neither parameters nor hidden

  const ETraceGraph& graph() const;
  const Algorithm& algorithm() const;
  const ETraceConfig& config() const { return algorithm().config; }
  const LearnerOptions& options() const;
  const CompiledRule& rule() const;
  Module& model() const;
  CompilationReport report() const;
  std::string show_graph(int verbose = 1, std::ostream* out = nullptr) const;
  // The program of the newest call; null before the first. For reports and timing.
  const StepProgram* last_program() const;
  std::string last_plan() const;  // its kernels, one per line; empty before the first
  bool is_batched() const { return options().batch_size.has_value(); }

 private:
  friend class GradDriver;
  friend class Certifier;
  friend class PreparedGrad;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::shared_ptr<LearnerUse> use_ = std::make_shared<LearnerUse>();
};

// `model` must outlive the learner.
Learner compile(Module& model, const Algorithm& algorithm,
                const std::vector<Array>& examples, const LearnerOptions& options = {});
Learner compile(Module& model, const Algorithm& algorithm, const Array& example,
                const LearnerOptions& options = {});

}  // namespace braintrace
