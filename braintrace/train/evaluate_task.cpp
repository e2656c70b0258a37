// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/evaluate_task.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/model/step_model.h"
#include "braintrace/run/plan.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/metrics.h"
#include "braintrace/train/populations.h"
#include "braintrace/train/sequence.h"

namespace braintrace {
namespace {

// The model's step with the spikes of its neurons as further outputs.
struct Probe : Module {
  Module& model;
  std::vector<Population> populations;
  explicit Probe(Module& m) : model(m), populations(spiking_populations(m)) {
    add("model", m);
  }
  std::vector<Value> update_all(const std::vector<Value>& in) override {
    std::vector<Value> out = model.update_all(in);
    for (const Population& p : populations) out.push_back(p.neuron->get_spike());
    return out;
  }
};

// The batch size the states have now; absent: none, or no state has a value.
std::optional<std::int64_t> present_batch(const Module& m) {
  for (const NamedState& s : collect_states(m)) {
    if (!is_hidden(s.state->kind()) || !s.state->has_value()) continue;
    const Shape& now = s.state->stored().shape();
    if (now.size() == s.state->spec(0).shape.size() + 1) return now[0];
  }
  return {};
}

bool has_values(const Module& m) {
  const std::vector<NamedState> states = collect_states(m);
  return std::all_of(states.begin(), states.end(),
                     [](const NamedState& s) { return s.state->has_value(); });
}

struct Sums {
  double loss = 0, hits = 0, scored = 0;  // over samples and scored steps
  double spikes = 0, chances = 0;         // units that fired, and that could have
};

class Evaluator {
 public:
  Evaluator(const Task& task, Module& model, const EvaluateOptions& options)
      : task_(task), options_(options), probe_(model), constant_(task) {}

  Evaluation run() {
    Sums sums;
    for (std::int64_t done = 0; done < options_.samples;) {
      const std::int64_t count = std::min(options_.batch, options_.samples - done);
      const TaskBatch b =
          task_.batch(options_.split, options_.first + done, count, options_.pause);
      sequence(b, count, sums);
      constant_.add(b, options_.pause);
      done += count;
    }
    Evaluation e;
    e.loss = sums.loss / sums.scored;
    if (task_.loss() == TaskLoss::softmax_xent) e.accuracy = sums.hits / sums.scored;
    if (sums.chances > 0) e.firing_rate = sums.spikes / sums.chances;
    e.constant = constant_.value();
    e.rasters = std::move(rasters_);
    return e;
  }

 private:
  void prepare(std::int64_t count) {
    init_all_states(probe_.model, {.batch_size = count});
    const bool same = step_ && count == count_;
    count_ = count;
    if (!same) {
      step_ = trace_step(
          probe_, std::vector<Type>{{DType::f32, {count, task_.shape().features}}});
      BT_REQUIRE(step_->num_outputs == 1 + probe_.populations.size(),
                 fmt::format("evaluate: the model must have one output, got {}",
                             step_->num_outputs - probe_.populations.size()));
      plan_.emplace(step_->program, PlanOptions{.threads = options_.threads});
      outputs_.clear();
    }
    inputs_ = {Array()};
    for (Array& a : read_states(*step_)) inputs_.push_back(std::move(a));
  }

  void sequence(const TaskBatch& b, std::int64_t count, Sums& sums) {
    const bool draw = rasters_.empty() && options_.raster_units > 0;
    prepare(count);
    for (std::int64_t t = 0; t < task_.shape().steps; ++t) {
      inputs_[0] = row(b.inputs, t).contiguous();
      outputs_.clear();
      plan_->run(inputs_, outputs_);
      score(outputs_[0], row(b.targets, t), b.mask[static_cast<std::size_t>(t)], sums);
      for (std::size_t p = 0; p < probe_.populations.size(); ++p) {
        const Array& spikes = outputs_[1 + p];
        sums.chances += static_cast<double>(spikes.size());
        for (const double s : spikes.to_doubles()) sums.spikes += s;
        if (draw) note_spikes(p, t, spikes);
      }
      for (std::size_t i = 1; i < inputs_.size(); ++i)
        inputs_[i] = outputs_[step_->num_outputs + i - 1];
      if (options_.pause) options_.pause();
    }
  }

  void score(const Array& prediction, const Array& target, double mask,
             Sums& sums) const {
    if (mask == 0) return;
    const double weight = mask * static_cast<double>(count_);
    sums.loss += weight * task_loss(task_, prediction, target).array().at(0);
    if (task_.loss() == TaskLoss::softmax_xent)
      sums.hits += weight * accuracy(prediction, target).array().at(0);
    sums.scored += weight;
  }

  // The first sample's spikes of population p.
  void note_spikes(std::size_t p, std::int64_t t, const Array& spikes) {
    if (rasters_.size() <= p)
      rasters_.push_back({probe_.populations[p].path,
                          task_.shape().steps,
                          std::min(options_.raster_units, spikes.size() / count_),
                          {}});
    SpikeRaster& r = rasters_[p];
    for (std::int64_t u = 0; u < r.units; ++u)
      if (spikes.at(u) > 0) r.spikes.emplace_back(t, u);
  }

  const Task& task_;
  const EvaluateOptions& options_;
  Probe probe_;
  BaselineSums constant_;
  std::optional<StepModel> step_;
  std::optional<Plan> plan_;
  std::vector<Array> inputs_, outputs_;
  std::int64_t count_ = 0;
  std::vector<SpikeRaster> rasters_;
};

}  // namespace

Value task_loss(const Task& task, const Value& prediction, const Value& target) {
  return task.loss() == TaskLoss::mse ? mse(prediction, target)
                                      : softmax_cross_entropy(prediction, target);
}

RunPoint Evaluation::point(std::int64_t update) const {
  return {update, loss, accuracy, firing_rate};
}

Evaluation evaluate(const Task& task, Module& model, const EvaluateOptions& options) {
  BT_REQUIRE(options.samples > 0 && options.batch > 0,
             fmt::format("evaluate: samples and batch must be positive, got {} and {}",
                         options.samples, options.batch));
  const bool training = model.training();
  const std::optional<std::int64_t> batch = present_batch(model);
  const StateDict before = has_values(model) ? state_dict(model) : StateDict{};
  const auto put_back = [&] {
    model.set_training(training);
    init_all_states(model, {.batch_size = batch});
    load_state_dict(model, before);
  };
  Evaluation e;
  try {
    model.set_training(false);
    e = Evaluator(task, model, options).run();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
  return e;
}

}  // namespace braintrace
