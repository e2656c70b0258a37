// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reverse mode stops in front of loops of unknown length. What the weights of the newest
// step do to the states through such loops is found in forward mode instead:
//   s . ((df - df without these loops) (x) x)
// beside the exact gradient of everything else. What reaches the loss through another
// member of the group is left out of s where df has it: position by position for direct
// relations, along every edge for dense ones.
#include "braintrace/algo/signals.h"

namespace braintrace {

// True when some relation needs it.
bool has_while_terms(const RuleContext& context);

class WhileTerms {
 public:
  explicit WhileTerms(const RuleContext& context);
  std::vector<ValueId> reads() const;
  // `total`: the adjoints of the states, by group.
  LeafGradients operator()(const StepTerms& t, const GroupSignals& total) const;

 private:
  const RuleContext& context_;
  DirectAdjoint by_position_, along_everything_;
};

}  // namespace braintrace
