// SPDX-License-Identifier: Apache-2.0
// Batches of samples and the constant predictor.
#include "braintrace/train/task.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

namespace braintrace {

Task::Task(std::string name, TaskLoss loss, Shape shape, std::vector<double> mask,
           Generator generator, TaskOptions options)
    : name_(std::move(name)),
      loss_(loss),
      shape_(shape),
      mask_(std::move(mask)),
      generator_(std::move(generator)),
      options_(options) {
  BT_REQUIRE(
      shape_.steps > 0 && shape_.features > 0 && shape_.outputs > 0,
      fmt::format("{}: steps, features and outputs must be positive, got {}, {}, {}",
                  name_, shape_.steps, shape_.features, shape_.outputs));
  BT_REQUIRE(static_cast<std::int64_t>(mask_.size()) == shape_.steps,
             fmt::format("{}: the mask must have {} entries, got {}", name_, shape_.steps,
                         mask_.size()));
}

TaskBatch Task::batch(Split split, std::int64_t first, std::int64_t count,
                      const Pause& pause) const {
  BT_REQUIRE(first >= 0 && count > 0,
             fmt::format("{}: a batch needs first >= 0 and count > 0, got {} and {}",
                         name_, first, count));
  const std::int64_t T = shape_.steps, F = shape_.features;
  const bool labels = loss_ == TaskLoss::softmax_xent;
  const std::int64_t O = labels ? 1 : shape_.outputs;
  braintrace::Shape target_shape = {T, count};
  if (!labels) target_shape.push_back(O);
  TaskBatch b{Array(DType::f32, {T, count, F}),
              Array(labels ? DType::i32 : DType::f32, target_shape), mask_};
  const RngKey key = fold_in(fold_in(rng_key(options_.seed), name_),
                             split == Split::train ? "train" : "test");
  float* x = b.inputs.mutable_data<float>();
  const auto put_targets = [&](auto* y, std::int64_t n, const Sample& s) {
    for (std::int64_t t = 0; t < T; ++t)
      for (std::int64_t o = 0; o < O; ++o)
        y[(t * count + n) * O + o] =
            static_cast<std::remove_reference_t<decltype(*y)>>(s.targets[t * O + o]);
  };
  for (std::int64_t n = 0; n < count; ++n) {
    const Sample s =
        generator_(fold_in(key, static_cast<std::uint64_t>(first + n)), split);
    BT_INVARIANT(static_cast<std::int64_t>(s.inputs.size()) == T * F &&
                 static_cast<std::int64_t>(s.targets.size()) == T * O);
    for (std::int64_t t = 0; t < T; ++t)
      std::copy_n(&s.inputs[t * F], F, x + (t * count + n) * F);
    if (labels)
      put_targets(b.targets.mutable_data<std::int32_t>(), n, s);
    else
      put_targets(b.targets.mutable_data<float>(), n, s);
    if (pause) pause();
  }
  return b;
}

namespace {

void require_batch_of(const Task& task, const TaskBatch& b) {
  const bool labels = task.loss() == TaskLoss::softmax_xent;
  const Shape& s = b.targets.shape();
  const std::int64_t T = task.shape().steps, O = task.shape().outputs;
  const bool fits = s.size() == (labels ? 2 : 3) && s[0] == T && (labels || s[2] == O) &&
                    b.targets.dtype() == (labels ? DType::i32 : DType::f32) &&
                    std::ssize(b.mask) == T;
  BT_REQUIRE(fits,
             fmt::format("{}: a batch of this task has {} steps of {}, got targets "
                         "{}{} and a mask of {} steps",
                         task.name(), T, labels ? "labels" : fmt::format("{} outputs", O),
                         to_string(b.targets.dtype()), to_string(s), b.mask.size()));
}

}  // namespace

BaselineSums::BaselineSums(const Task& task) : task_(task) {
  const auto n = static_cast<std::size_t>(task.shape().outputs);
  weights_.assign(n, 0);
  if (task.loss() == TaskLoss::mse) sums_ = squares_ = weights_;
}

void BaselineSums::add(const TaskBatch& batch, const Pause& pause) {
  require_batch_of(task_, batch);
  task_.loss() == TaskLoss::mse ? add_outputs(batch, pause) : add_labels(batch, pause);
}

void BaselineSums::add_outputs(const TaskBatch& b, const Pause& pause) {
  const std::int64_t T = task_.shape().steps, N = b.targets.shape()[1];
  const Array targets = b.targets.contiguous();
  const float* y = targets.data<float>();
  for (std::int64_t t = 0; t < T; ++t) {
    const double m = b.mask[static_cast<std::size_t>(t)];
    for (std::int64_t n = 0; n < N; ++n)
      for (std::size_t o = 0; o < weights_.size(); ++o) {
        const double v = *y++;
        sums_[o] += m * v;
        squares_[o] += m * v * v;
        weights_[o] += m;
      }
    if (pause) pause();
  }
}

void BaselineSums::add_labels(const TaskBatch& b, const Pause& pause) {
  const std::int64_t T = task_.shape().steps, N = b.targets.shape()[1];
  const Array targets = b.targets.contiguous();
  const std::int32_t* y = targets.data<std::int32_t>();
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t n = 0; n < N; ++n) {
      const std::int64_t label = *y++;
      BT_REQUIRE(label >= 0 && label < std::ssize(weights_),
                 fmt::format("{}: labels must be 0 to {}, got {}", task_.name(),
                             weights_.size() - 1, label));
      weights_[static_cast<std::size_t>(label)] += b.mask[static_cast<std::size_t>(t)];
    }
    if (pause) pause();
  }
}

Baseline BaselineSums::value() const {
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  BT_REQUIRE(total > 0, task_.name() + ": no step is scored");
  Baseline out;
  if (task_.loss() == TaskLoss::mse) {
    // The mean minimises the squared error; what is left is the variance.
    for (std::size_t o = 0; o < sums_.size(); ++o)
      out.loss += (squares_[o] - sums_[o] * sums_[o] / weights_[o]) / total;
    out.loss = std::max(out.loss, 0.0);
    return out;
  }
  // The class frequencies minimise the cross-entropy; what is left is their entropy.
  out.accuracy = 0;
  for (const double w : weights_) {
    if (w > 0) out.loss -= w / total * std::log(w / total);
    out.accuracy = std::max(*out.accuracy, w / total);
  }
  return out;
}

Baseline constant_baseline(const Task& task, const TaskBatch& batch, const Pause& pause) {
  BaselineSums sums(task);
  sums.add(batch, pause);
  return sums.value();
}

}  // namespace braintrace
