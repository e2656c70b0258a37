// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the arguments of a call say whether they hold one step or several.
#include "braintrace/ops/ops.h"

namespace braintrace {

// The same as the plain values.
struct SingleStepData {
  Values values;
};
// A leading time axis: several steps in one call.
struct MultiStepData {
  Values values;
};

}  // namespace braintrace
