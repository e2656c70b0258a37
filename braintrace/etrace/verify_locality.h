// SPDX-License-Identifier: Apache-2.0
#pragma once
// The promise of the cut set, checked on the programs themselves: what is left of a
// transition, or of a direct tail, keeps every position to itself.
#include "braintrace/etrace/relation.h"

namespace braintrace {

// InternalError names the group or op, and the op that mixes positions. Reads the
// extracted programs alone, so it also finds a wrong extraction.
// Needs: mixing = cut, no recurrent mixing. Skips: dense relations.
void verify_locality(const HiddenGroup& group);
void verify_locality(const HiddenParamOpRelation& relation);

}  // namespace braintrace
