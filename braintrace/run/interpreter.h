// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a program node by node: slow, plain, right. The oracle for every other executor.
#include <span>
#include <vector>

#include "braintrace/ir/evaluate.h"

namespace braintrace {

struct InterpretOptions {
  NodeObserver observe = {};
  // UserError (runtime) naming the op and the line where the first NaN or inf appears.
  bool check_finite = false;
};

std::vector<Array> interpret(const Graph& g, std::span<const Array> inputs,
                             const InterpretOptions& options = {});

}  // namespace braintrace
