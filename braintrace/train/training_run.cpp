// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/training_run.h"

#include <chrono>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace braintrace {
namespace {

LearnerOptions learner_options(const TrainingOptions& o, const Algorithm& rule) {
  BT_REQUIRE_KIND(
      o.update == UpdateAt::sequence || rule.engine != Engine::bptt,
      ErrorKind::not_supported,
      fmt::format("TrainingRun: {} needs whole sequences; with an update at "
                  "every step it would go back one step only. Use update "
                  "sequence (--update sequence), or an online rule such as D_RTRL",
                  rule.name));
  BT_REQUIRE(o.batch > 0,
             fmt::format("TrainingRun: batch must be positive, got {}", o.batch));
  LearnerOptions l = o.learner;
  l.batch_size = o.batch;
  return l;
}

Array example(const Task& task, const TrainingOptions& o) {
  return zeros({o.batch, task.shape().features});
}

Array as_array(const std::vector<double>& mask) {
  return array({static_cast<std::int64_t>(mask.size())}, mask, DType::f64);
}

}  // namespace

std::string_view to_string(UpdateAt u) {
  return u == UpdateAt::sequence ? "sequence" : "step";
}

UpdateAt update_at_from_string(std::string_view s) {
  for (const UpdateAt u : {UpdateAt::sequence, UpdateAt::step})
    if (to_string(u) == s) return u;
  throw UserError(fmt::format("updates come once per sequence or step, got '{}'", s));
}

bool diverged(const RunLog& log) {
  const auto lost = [](const std::vector<RunPoint>& points) {
    return !points.empty() && !std::isfinite(points.back().loss);
  };
  return lost(log.training) || lost(log.evaluations);
}

void begin_sequence(Learner& learner) {
  std::vector<std::pair<State*, Array>> keys;
  for (const NamedState& s : collect_states(learner.model()))
    if (dynamic_cast<const RngState*>(s.state))
      keys.emplace_back(s.state, s.state->stored());
  std::vector<TraceView> drawn;
  for (TraceView& t : learner.etraces())
    if (t.slot.kind == "key") drawn.push_back(std::move(t));
  init_all_states(learner.model(), {.batch_size = learner.options().batch_size});
  for (const auto& [state, key] : keys) state->store(0, key);
  learner.reset_state();
  for (const TraceView& t : drawn) learner.set_etrace(t.slot.name(), t.value);
}

TrainingRun::TrainingRun(Task task, Module& model, const Algorithm& algorithm,
                         UpdateRule rule, const TrainingOptions& options)
    : task_(std::move(task)),
      options_(options),
      learner_(model, algorithm, {example(task_, options)},
               learner_options(options, algorithm)),
      optimizer_(rule, options.optimizer) {
  optimizer_.attach(model, learner_.threads());
  loss_ = [this](const Values& in) {
    return LossResult{.loss = task_loss(task_, learner_(in[0]), in[1]), .results = {}};
  };
}

GradResult TrainingRun::gradient(const TaskBatch& b) {
  const std::vector<Array> sequences = {b.inputs, b.targets};
  if (!prepared_ || !prepared_->fits(sequences)) {
    GradOptions o;
    o.carry_traces = false;
    o.loss_output = LossOutput::scalar;
    prepared_.emplace(learner_, loss_, sequences, o);
  }
  begin_sequence(learner_);
  prepared_->set_mask(as_array(b.mask));
  return prepared_->grad(sequences);
}

double TrainingRun::update_by_step(const TaskBatch& b) {
  double sum = 0, scored = 0;
  begin_sequence(learner_);
  for (std::int64_t t = 0; t < task_.shape().steps; ++t) {
    const std::vector<Array> args = {row(b.inputs, t).contiguous(),
                                     row(b.targets, t).contiguous()};
    if (!handle_) handle_ = learner_.trace_loss(loss_, args);
    const double mask = b.mask[static_cast<std::size_t>(t)];
    if (mask == 0) {
      learner_.step_grad(args, *handle_, mask);
      continue;
    }
    sum += mask * learner_.step_update(args, *handle_, optimizer_, mask).loss;
    scored += mask;
  }
  return sum / scored;
}

double TrainingRun::update() {
  const TaskBatch b =
      task_.batch(Split::train, updates_ * options_.batch, options_.batch);
  const auto start = std::chrono::steady_clock::now();
  double loss = 0;
  if (options_.update == UpdateAt::step) {
    loss = update_by_step(b);
  } else {
    const GradResult g = gradient(b);
    optimizer_.update(g.grads);
    loss = g.losses.at(0);
  }
  log_.training.push_back({.update = updates_ + 1, .loss = loss});
  BT_REQUIRE_KIND(
      std::isfinite(loss), ErrorKind::runtime,
      fmt::format("train: the loss of batch {} is {}; a smaller learning "
                  "rate or clipping may help",
                  updates_ + 1, std::isnan(loss) ? "not a number" : "infinite"));
  ++updates_;
  log_.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  log_.time_steps += options_.batch * task_.shape().steps;
  return loss;
}

void TrainingRun::note_evaluation(const TrainingLength& length) {
  Evaluation e = evaluate(task_, learner_.model(), length.evaluation);
  log_.evaluations.push_back(e.point(updates_));
  log_.constant_loss = e.constant.loss;
  log_.constant_accuracy = e.constant.accuracy;
  log_.rasters = std::move(e.rasters);
  if (length.on_evaluation) length.on_evaluation(log_);
}

bool TrainingRun::train(const TrainingLength& length) {
  const std::int64_t every = length.evaluate_every;
  if (every > 0 && updates_ == 0) note_evaluation(length);
  while (updates_ < length.updates) {
    update();
    const bool last = updates_ == length.updates;
    if (every > 0 && (last || updates_ % every == 0)) note_evaluation(length);
    if (length.on_update && !length.on_update(updates_, log_)) return last;
  }
  return true;
}

CertificateData TrainingRun::certificate(std::int64_t window) {
  const TaskBatch b = task_.batch(Split::test, 0, options_.batch);
  const std::int64_t steps = task_.shape().steps;
  const double scored = std::accumulate(b.mask.begin(), b.mask.end(), 0.0);
  // So that the mean over all steps is the mean over scored ones.
  const Value share =
      Value(as_array(b.mask)) * (static_cast<double>(steps) / std::max(scored, 1.0));
  const TracedFn loss = [this](const Values& in) {
    const Value l = task_loss(task_, learner_(in[0]), in[1]);
    return LossResult{.loss = astype(in[2], l.dtype()) * l, .results = {}};
  };
  begin_sequence(learner_);
  return learner_.certificate({b.inputs, b.targets, share.array()}, loss, window);
}

Checkpoint TrainingRun::checkpoint() const {
  return checkpoint_of(learner_, optimizer_, updates_);
}

void TrainingRun::restore(const Checkpoint& c) {
  braintrace::restore(learner_, optimizer_, c);
  updates_ = c.step;
}

}  // namespace braintrace
