// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cleaning of a program that is about to run many times: loops hold only what goes
// from step to step, everything else is done for all steps at once, sums of products are
// matrix products.
//   Needs: a verified graph that will not be differentiated or traced any more.
//   Keeps: inputs, outputs, values up to the order of sums and of factors under them.
// Every pass runs a fixed number of times.
#include "braintrace/passes/pipeline.h"

namespace braintrace {

Graph optimize_for_run(const Graph& g, PassRunner& run);
Graph optimize_for_run(const Graph& g);

}  // namespace braintrace
