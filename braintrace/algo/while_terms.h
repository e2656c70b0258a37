// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reverse mode stops in front of loops of unknown length. What the weights of the newest
// step do to the states through such loops is found in forward mode instead:
//   s . ((df - df without these loops) (x) x)
// beside the exact gradient of everything else.
#include "braintrace/algo/learning_rule.h"

namespace braintrace {

// True when some relation needs it.
bool has_while_terms(const RuleContext& context);
LeafGradients while_terms(const RuleContext& context, const StepTerms& t,
                          const GroupSignals& signals);

}  // namespace braintrace
