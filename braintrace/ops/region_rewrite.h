// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpDef::to_select of cond and OpDef::unroll of scan.
#include "braintrace/ir/op_def.h"

namespace braintrace {

// Both branches in place, results picked by select. A branch sees its operands while it
// is chosen and a safe value (1; 0 for integers) otherwise. Nullopt when a branch may
// fail on such values: it reads by index or holds a loop of unknown length.
Rewrite cond_to_select(const Site& s);

// The steps one after another. Nullopt above max_length and for no steps at all.
Rewrite scan_unroll(const Site& s, const UnrollOptions& options);

}  // namespace braintrace
