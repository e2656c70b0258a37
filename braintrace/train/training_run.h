// SPDX-License-Identifier: Apache-2.0
#pragma once
// A training loop that can stop at any update and go on bit for bit: task, model, rule
// and optimiser.
//
//   TrainingRun run(make_task("integrator"), model, D_RTRL{}, Adam{.lr = 1e-2});
//   run.train({.updates = 200, .evaluate_every = 50});
//   run.log().evaluations.back().loss
#include <functional>

#include "braintrace/train/evaluate_task.h"
#include "braintrace/train/learner_checkpoint.h"
#include "braintrace/train/prepared_grad.h"

namespace braintrace {

// After a whole sequence, or at every scored step of it.
enum class UpdateAt { sequence, step };
std::string_view to_string(UpdateAt u);
UpdateAt update_at_from_string(std::string_view s);  // UserError lists both

struct TrainingOptions {
  std::int64_t batch = 32;
  UpdateAt update = UpdateAt::sequence;
  OptimizerOptions optimizer = {};
  LearnerOptions learner = {};  // batch_size is taken from `batch`
};

// Each batch is drawn anew: update u sees samples u batch, ..., (u + 1) batch - 1.
struct TrainingLength {
  std::int64_t updates = 100;       // batches in all, those before a restore included
  std::int64_t evaluate_every = 0;  // batches; also before the first and after the last
  EvaluateOptions evaluation = {};
  // After every batch. False stops.
  std::function<bool(std::int64_t done, const RunLog& log)> on_update = {};
  std::function<void(const RunLog& log)> on_evaluation = {};
};

// The last loss, of a batch or of a test, is infinite or not a number.
bool diverged(const RunLog& log);

// A new sequence: hidden states as they are initialised, traces and counters zero.
// Weights and keys of random draws go on, so no two sequences see the same noise.
void begin_sequence(Learner& learner);

class TrainingRun {
 public:
  // Initialises the model's states and compiles. `model` must outlive the run. UserError
  // not_supported for BPTT with updates at steps.
  TrainingRun(Task task, Module& model, const Algorithm& algorithm, UpdateRule rule,
              const TrainingOptions& options = {});

  TrainingRun(const TrainingRun&) = delete;  // its loss refers to it

  // Of one batch at the present weights, over a sequence of its own.
  GradResult gradient(const TaskBatch& b);
  // One batch; its mean loss before the update. UserError, and the log holds the loss,
  // when that is infinite or not a number.
  double update();
  // True when the length was reached, false when stopped.
  bool train(const TrainingLength& length);

  // The rule beside back-propagation, on `batch` samples that were not trained on; only
  // scored steps count. Needs a whole sequence of its own: the next begins anew.
  CertificateData certificate(std::int64_t window = 1);

  std::int64_t updates() const { return updates_; }  // batches so far
  const RunLog& log() const { return log_; }
  RunLog& log() { return log_; }
  const Task& task() const { return task_; }
  Learner& learner() { return learner_; }
  Optimizer& optimizer() { return optimizer_; }

  // All that the batches to come depend on; step: batches so far. The log is not in it.
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& c);

 private:
  double update_by_step(const TaskBatch& b);
  void note_evaluation(const TrainingLength& length);

  Task task_;
  TrainingOptions options_;
  Learner learner_;
  Optimizer optimizer_;
  TracedFn loss_;
  std::optional<LossHandle> handle_;
  std::optional<PreparedGrad> prepared_;  // of whole sequences
  std::int64_t updates_ = 0;
  RunLog log_;
};

}  // namespace braintrace
