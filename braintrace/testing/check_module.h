// SPDX-License-Identifier: Apache-2.0
#pragma once
// One call per layer, several checks. Also for users' own modules: failures throw
// CheckFailure, so any test framework can report them.
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/close.h"

namespace braintrace::testing {

// Initialises every state in f64 (the batch size, if any, as given) and checks over the
// sequence
//   1 eager outputs and states equal those of the traced program;
//   2 gradients of a fixed random projection of all float outputs, by every float
//     parameter, starting state and argument, against central differences.
// The sequence is taken in f64. The module is left as after initialisation.
void check_module(Module& m, const std::vector<StepInputs>& sequence,
                  const InitOptions& init = {});
void check_module(Module& m, const Array& x);  // one step

}  // namespace braintrace::testing
