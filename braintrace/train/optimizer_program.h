// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules of train/optimizers.h as IR, for programs that learn without the library.
#include "braintrace/ir/value.h"
#include "braintrace/train/optimizers.h"

namespace braintrace {

double learning_rate(const UpdateRule& rule);
// What the rule keeps per parameter, all zeros at first: "m", "v", ...
std::vector<std::string> moment_names(const UpdateRule& rule);

struct OptimizerStep {
  Value step;                            // w - lr * step is the new parameter
  std::map<std::string, Value> moments;  // their next values
};
// `count`: the number of this update as a float, from 1.
OptimizerStep optimizer_step(const UpdateRule& rule, const Value& w, const Value& g,
                             const Value& count,
                             const std::map<std::string, Value>& moments);

}  // namespace braintrace
