// SPDX-License-Identifier: Apache-2.0
#pragma once
// How well a model does on a task: the step alone, without traces, in evaluation mode.
#include "braintrace/base/run_log.h"
#include "braintrace/model/module.h"
#include "braintrace/train/task.h"

namespace braintrace {

// The loss of one step, as the task says.
Value task_loss(const Task& task, const Value& prediction, const Value& target);

struct EvaluateOptions {
  Split split = Split::test;
  std::int64_t first = 0, samples = 256;
  std::int64_t batch = 64;
  std::int64_t raster_units = 0;  // > 0: spikes of the first sample, so many units each
  int threads = 0;
  Pause pause = {};  // between samples and steps
};

struct Evaluation {
  double loss = 0;                         // mean over scored steps and samples
  std::optional<double> accuracy = {};     // over scored steps, where there are labels
  std::optional<double> firing_rate = {};  // mean over units, steps and samples
  Baseline constant = {};                  // on the same samples
  std::vector<SpikeRaster> rasters;        // one per population of spiking units
  RunPoint point(std::int64_t update) const;
};

// The model's states are as before when it returns or throws. UserError when the model
// does not take the task's inputs or give its outputs.
Evaluation evaluate(const Task& task, Module& model, const EvaluateOptions& options = {});

}  // namespace braintrace
