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
// Scales the recurrent weights of a spiking model until 15-20 % of its units fire per
// step once it has settled. Returns the rate, 0 for models without spikes.
double tune_spike_rate(const BenchRequest& r, Module& model, LearnerOptions options,
                       const Array& xs);

}  // namespace braintrace::cli
