// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one op the IR itself needs: a literal array. All other ops live in ops/.
#include "braintrace/ir/op_def.h"

namespace braintrace {

extern const OpDef constant_op;

// The literal of a constant node, null for any other node.
const Array* literal(const Node& n);

}  // namespace braintrace
