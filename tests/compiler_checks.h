// SPDX-License-Identifier: Apache-2.0
#pragma once
// Properties every compiled graph must have. CheckFailure when one does not hold.
#include <string>
#include <vector>

#include "braintrace/testing/micro_model.h"

namespace compiler_property_test {

void require(bool holds, const std::string& what);

// One verdict with its reason and record for every parameter of the model, used or not,
// and for those the step captured.
void check_verdicts(const braintrace::ETraceGraph& g, const braintrace::Module& m);
// Programs of the graph verify; relations have groups and tails.
void check_graphs(const braintrace::ETraceGraph& g);
// Transitions and tails give the states the program gives, also perturbed by nothing.
void check_values(const braintrace::ETraceGraph& g,
                  const std::vector<braintrace::Array>& args);
// Transitions and direct tails work position by position (numeric Jacobians).
void check_positions(const braintrace::ETraceGraph& g,
                     const std::vector<braintrace::Array>& args);

}  // namespace compiler_property_test
