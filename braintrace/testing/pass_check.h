// SPDX-License-Identifier: Apache-2.0
#pragma once
// Judges of passes: two programs that must mean the same.
#include "braintrace/ir/graph.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/random_graph.h"

namespace braintrace::testing {

// A program for a pass: its inputs, and what `body` makes of them.
Graph written(const std::vector<Type>& inputs, const ValuesFn& body);

// Throws CheckFailure unless both programs have the same signature and, interpreted on
// random numbers, give the same values up to the order of sums (tol::f64, tol::f32).
void check_same_values(const Graph& before, const Graph& after, std::uint64_t seed = 1);
void check_same_values(const Program& before, const Graph& after);

// The same for the reverse derivatives by all float inputs. Needs: both are
// differentiable.
void check_same_derivatives(const Graph& before, const Graph& after,
                            std::uint64_t seed = 1);

}  // namespace braintrace::testing
