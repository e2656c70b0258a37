// SPDX-License-Identifier: Apache-2.0
// Batches of samples and the constant predictor.
#include "braintrace/train/task.h"

#include <algorithm>
#include <cmath>

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

TaskBatch Task::batch(Split split, std::int64_t first, std::int64_t count) const {
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
  }
  return b;
}

namespace {

// The mean minimises the squared error; what is left is the variance.
Baseline mean_baseline(const Task& task, const TaskBatch& b) {
  const std::int64_t T = task.shape().steps, O = task.shape().outputs;
  const std::int64_t N = b.targets.shape()[1];
  const float* y = b.targets.data<float>();
  double total = 0, weight = 0;
  for (std::int64_t o = 0; o < O; ++o) {
    double sum = 0, squares = 0, count = 0;
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t n = 0; n < N; ++n) {
        const double v = y[(t * N + n) * O + o], m = b.mask[t];
        sum += m * v;
        squares += m * v * v;
        count += m;
      }
    }
    total += squares - sum * sum / count;
    weight += count;
  }
  return {.loss = std::max(total / weight, 0.0)};
}

// The class frequencies minimise the cross-entropy; what is left is their entropy.
Baseline frequency_baseline(const Task& task, const TaskBatch& b) {
  const std::int64_t T = task.shape().steps, N = b.targets.shape()[1];
  const std::int32_t* y = b.targets.data<std::int32_t>();
  std::vector<double> counts(static_cast<std::size_t>(task.shape().outputs), 0);
  double total = 0;
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t n = 0; n < N; ++n) {
      counts.at(static_cast<std::size_t>(y[t * N + n])) += b.mask[t];
      total += b.mask[t];
    }
  }
  Baseline out{.loss = 0, .accuracy = 0};
  for (const double c : counts) {
    if (c > 0) out.loss -= c / total * std::log(c / total);
    out.accuracy = std::max(*out.accuracy, c / total);
  }
  return out;
}

}  // namespace

Baseline constant_baseline(const Task& task, const TaskBatch& batch) {
  BT_REQUIRE(
      std::any_of(batch.mask.begin(), batch.mask.end(), [](double m) { return m > 0; }),
      task.name() + ": no step is scored");
  return task.loss() == TaskLoss::mse ? mean_baseline(task, batch)
                                      : frequency_baseline(task, batch);
}

}  // namespace braintrace
