// SPDX-License-Identifier: Apache-2.0
#pragma once
// The body of an opened loop, sub-step by sub-step: what a rule reads there, found in the
// stacked values the loop hands out and in what it is given.
#include "braintrace/algo/relation_writer.h"
#include "braintrace/etrace/scan_descent.h"

namespace braintrace {

class LoopValues {
 public:
  // `ids`: values of the body.
  LoopValues(const ModuleInfo& step, const ScanDescentInfo& loop,
             std::vector<ValueId> ids);

  // Values of the step's program this needs.
  std::vector<ValueId> reads() const;
  // What changes from sub-step to sub-step, (length, ...) each.
  std::vector<Value> stacked(const StepValues& step) const;
  // All values of one sub-step, given the slices of stacked().
  StepValues at(const StepValues& step, std::span<const Value> slices) const;
  StepValues last(const StepValues& step) const;

 private:
  std::vector<ValueId> constants() const;  // of the step: what the loop is given

  const ModuleInfo& step_;
  const ScanDescentInfo& loop_;
  std::vector<ValueId> moving_, fixed_;  // of the body
  Graph once_;                           // constants -> fixed_
};

}  // namespace braintrace
