// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums of gradients over the windows of a sequence, and their means: one pass over each,
// vectors at a time and on all threads where there are enough numbers for it.
#include <memory>
#include <optional>
#include <vector>

#include "braintrace/ir/builder.h"
#include "braintrace/model/module.h"
#include "braintrace/run/plan.h"

namespace braintrace {

class GradientPasses {
 public:
  // Null: numbers are taken one by one, as by the interpreter.
  explicit GradientPasses(std::shared_ptr<ThreadPool> pool) : pool_(std::move(pool)) {}

  // Where `sums` and `values` are; what another array shares with them stays. Needs:
  // floats, and for every term a sum of its type.
  void add(StateDict& sums, const StateDict& terms);
  void divide(StateDict& values, double divisor);

 private:
  using Write = Value (*)(const Value& place, const Value& operand);
  // One result per place, of the place and its operand.
  struct Pass {
    std::vector<Array*> places = {};
    std::vector<const Array*> operands = {};
    std::vector<Type> types = {};  // of the plan: places, then operands
    std::optional<Plan> plan = {};
    std::vector<const Array*> inputs = {};
    std::vector<Array> outputs = {};
  };
  bool is_worth_a_plan(const Pass& pass) const;
  void run(Pass& pass, Write write);

  std::shared_ptr<ThreadPool> pool_;
  Pass sum_, quotient_;
  std::vector<Array> divisors_;
  const Array nothing_;
};

}  // namespace braintrace
