// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces shared by the replays of recorded runs.
#include <nlohmann/json_fwd.hpp>

#include "braintrace/algo/algorithm.h"
#include "braintrace/etrace/options.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/parity.h"

namespace braintrace::testing::internal {

Array in_dtype(const Array& a, DType dtype);
Value loss_of(const GoldenCase& c, const Value& y, const Array& target);
// Loads weights and states; all of the model but random keys must be in the file.
void load(const GoldenCase& c, Module& m, DType dtype);

// The algorithm of a case and how its graph is compiled, in compat mode.
struct RecordedRule {
  Algorithm algorithm;
  CompileOptions graph;
};
RecordedRule recorded_rule(const nlohmann::json& golden_case);

// Random projections and widened traces multiply the rounding of the recorded run.
bool amplifies_rounding(const Algorithm& a);

struct Comparison {
  ParityResult& result;
  Tolerance tolerance;
  void operator()(const std::string& field, const Array& got, const Array& want) const;
};

// The recorded learning rule, replayed by a learner in compat mode: gradients per call,
// final traces, running index.
void compare_rule(const GoldenCase& c, const Comparison& check, DType dtype);

// The spikes of every neuron in the recorded states and in ours, which must be the same,
// and their recorded rate. UserError says where they differ.
void compare_spikes(const GoldenCase& c, const std::vector<StateDict>& states,
                    DType dtype);

}  // namespace braintrace::testing::internal
