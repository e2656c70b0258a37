// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated data for sequence learning: no downloads, the same numbers for the same seed.
// Sample i of a split is a pure function of (task, seed, split, i), so batches of any
// size and in any order hold the same samples.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braintrace/array/array.h"
#include "braintrace/array/rng.h"

namespace braintrace {

enum class TaskLoss { mse, softmax_xent };
enum class Split { train, test };

struct TaskBatch {
  Array inputs;   // f32 [steps, samples, features]
  Array targets;  // mse: f32 [steps, samples, outputs]; labels: i32 [steps, samples]
  std::vector<double> mask;  // [steps], 1 where the output is scored
};

// Called often in the course of long work. What it throws ends the work.
using Pause = std::function<void()>;

struct TaskOptions {
  std::uint64_t seed = 0;
};

class Task {
 public:
  // One sample: rows of inputs and targets, filled step by step.
  struct Sample {
    std::vector<float> inputs;   // [steps * features]
    std::vector<float> targets;  // [steps * outputs], or [steps] labels
  };
  using Generator = std::function<Sample(RngKey key, Split split)>;

  struct Shape {
    std::int64_t steps = 0, features = 0;
    std::int64_t outputs = 0;  // entries of a target, or number of classes
  };

  Task(std::string name, TaskLoss loss, Shape shape, std::vector<double> mask,
       Generator generator, TaskOptions options);

  const std::string& name() const { return name_; }
  TaskLoss loss() const { return loss_; }
  const Shape& shape() const { return shape_; }
  const std::vector<double>& mask() const { return mask_; }

  // Samples first, first + 1, ... UserError when count is not positive.
  TaskBatch batch(Split split, std::int64_t first, std::int64_t count,
                  const Pause& pause = {}) const;

 private:
  std::string name_;
  TaskLoss loss_;
  Shape shape_;
  std::vector<double> mask_;
  Generator generator_;
  TaskOptions options_;
};

// How well the best constant does on a batch, over the scored steps. What a trained model
// must beat. UserError on a batch that is none of the task, or has no scored step.
struct Baseline {
  double loss = 0;                      // mean per scored step and sample
  std::optional<double> accuracy = {};  // of the most frequent class
};
Baseline constant_baseline(const Task& task, const TaskBatch& batch,
                           const Pause& pause = {});

// The same of many batches, one after the other.
class BaselineSums {
 public:
  explicit BaselineSums(const Task& task);
  void add(const TaskBatch& batch, const Pause& pause = {});
  Baseline value() const;

 private:
  void add_outputs(const TaskBatch& batch, const Pause& pause);
  void add_labels(const TaskBatch& batch, const Pause& pause);

  const Task& task_;
  // By output: targets, weighed by the mask. By class: how often, in weights_.
  std::vector<double> sums_, squares_, weights_;
};

}  // namespace braintrace
