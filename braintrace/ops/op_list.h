// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every op object, one per line, sorted. For files of this room only.
#include "braintrace/ir/constant.h"

namespace braintrace {

// clang-format off
extern const OpDef add_op;
extern const OpDef broadcast_op;
extern const OpDef convert_op;
extern const OpDef dot_general_op;
extern const OpDef tanh_op;
// clang-format on

}  // namespace braintrace
