// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traces as the reference lays them out: one per weight input of an op.
#include "braintrace/ops/ops.h"

namespace braintrace {

// One state's traces of an op's slots (effective weights) -> one per weight input, in the
// order of the op's weights. Leading axes of the traces are kept.
Values traces_per_weight(const Site& s, const Values& slots);

}  // namespace braintrace
