// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces shared by the replays of recorded runs.
#include "braintrace/ops/ops.h"
#include "braintrace/testing/parity.h"

namespace braintrace::testing::internal {

Array in_dtype(const Array& a, DType dtype);
Value loss_of(const GoldenCase& c, const Value& y, const Array& target);
// Loads weights and states; every parameter of the model must be in the file.
void load(const GoldenCase& c, Module& m, DType dtype);

struct Comparison {
  ParityResult& result;
  Tolerance tolerance;
  void operator()(const std::string& field, const Array& got, const Array& want) const;
};

// The recorded learning rule, replayed by a learner in compat mode: gradients per call,
// final traces, running index.
void compare_rule(const GoldenCase& c, const Comparison& check, DType dtype);

}  // namespace braintrace::testing::internal
