// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happened in a training run, as plain data: written by `train`, drawn by `view`.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braintrace {

struct RunPoint {
  std::int64_t update = 0;  // updates done when it was measured
  double loss = 0;
  std::optional<double> accuracy = {};
  std::optional<double> firing_rate = {};  // share of spiking units that fire in a step
};

// Which units of a population fired at which step, for one sample.
struct SpikeRaster {
  std::string population;
  std::int64_t steps = 0, units = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> spikes;  // (step, unit)
};

struct RunLog {
  std::vector<std::pair<std::string, std::string>> facts;  // "task", "integrator"; ...
  std::vector<RunPoint> training;                          // one per update
  std::vector<RunPoint> evaluations;                       // on data not trained on
  // What the best constant answer earns on the data of the evaluations.
  double constant_loss = 0;
  std::optional<double> constant_accuracy = {};
  std::vector<SpikeRaster> rasters;
  double seconds = 0;           // of the updates alone
  std::int64_t time_steps = 0;  // steps of all samples, in these seconds
};

}  // namespace braintrace
