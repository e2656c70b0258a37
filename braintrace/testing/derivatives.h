// SPDX-License-Identifier: Apache-2.0
#pragma once
// Judges of whole programs: derivatives against central differences, lanes against a
// loop. Failures throw CheckFailure.
#include <functional>
#include <vector>

#include "braintrace/ops/ops.h"

namespace braintrace::testing {

// The program f writes for inputs of these types.
Graph traced(const ValuesFn& f, const std::vector<Array>& like);

// (f(x + h d) - f(x - h d)) / 2h for each float output. Needs: f64 inputs where there is
// a direction; an empty list means none.
std::vector<Array> central_differences(const Graph& g, const std::vector<Array>& inputs,
                                       const std::vector<Array>& directions);

struct DerivativeChecks {
  bool reverse = true;  // also vjp, by <ct, J d> = <J^T ct, d>
};
// jvp along one random direction in all f64 inputs, then vjp.
void check_derivatives(const Graph& g, const std::vector<Array>& inputs,
                       DerivativeChecks checks = {});

// vmap with axis 0 batched where marked, against one run per lane. Marked inputs are
// given with the lane axis in front.
void check_lanes(const Graph& g, const std::vector<Array>& inputs,
                 const std::vector<bool>& batched);

}  // namespace braintrace::testing
