// SPDX-License-Identifier: Apache-2.0
#pragma once
// Derivatives at hand-picked points: ties, zeros, bounds, where differences say nothing.
#include <functional>
#include <vector>

#include "braintrace/ops/ops.h"

namespace braintrace::testing {

// Partial derivatives of f at a point, by reverse mode in f64. f takes one scalar per
// coordinate and returns a scalar.
std::vector<double> slopes(const std::function<Value(const Values&)>& f,
                           const std::vector<double>& point);

}  // namespace braintrace::testing
