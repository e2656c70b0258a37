// SPDX-License-Identifier: Apache-2.0
#pragma once
// The models and data that are timed.
#include <memory>

#include "bench.h"

#include "braintrace/train/learner.h"

namespace braintrace::cli {

bool is_spiking(const BenchRequest& r);
// As JSON text for nn::build_model. UserError lists the models.
std::string bench_model(const BenchRequest& r);
Shape bench_input(const BenchRequest& r);  // of one sample
// Random inputs (10 % spikes for spiking models) and targets, time first.
Array bench_inputs(const BenchRequest& r, DType dtype);
Array bench_targets(const BenchRequest& r, DType dtype);

// How often the units of a spiking model fire.
class SpikeRate {
 public:
  // `xs`: inputs of all steps. The model's states begin anew.
  SpikeRate(const BenchRequest& r, Module& model, LearnerOptions options,
            const Array& xs);
  // Scales the recurrent weights until about 16 % fire per step once the network has
  // settled (15 to 20 % later on), and leaves it there.
  void tune();
  // The part that fires over the next steps; 0 for models without spikes.
  double now();

 private:
  void tune(std::int64_t layer);
  double now(std::int64_t layer);
  void step(std::int64_t t);

  const BenchRequest& request_;
  Module& model_;
  std::vector<Array> inputs_;
  std::unique_ptr<Learner> forward_;  // null for models without spikes
};

}  // namespace braintrace::cli
