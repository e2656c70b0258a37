// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a rule needs of the compiled graph.
#include "braintrace/algo/algorithm.h"
#include "braintrace/etrace/options.h"

namespace braintrace {

// `base` with recurrent mixing and patterns as the rule's recurrence scope asks, and
// without the perturbed program where its vjp method has no use for it.
CompileOptions graph_options(const Algorithm& algorithm, CompileOptions base);

}  // namespace braintrace
