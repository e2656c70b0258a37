// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs nodes whose inputs are all constants and puts their values in; on stretched
// numbers element by element once, and the result is stretched.
//   Needs: a verified graph.
//   Keeps: inputs, outputs, values (the op's own eval computes them), derivatives.
//   Skips: results above max_elements or larger than what they are made of (a broadcast
//          scalar is cheaper than its result), ops with sub-graphs (a loop may never
//          end), nodes whose run fails: the failure belongs to the program's run.
// Leaves the constants it consumed to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

struct FoldOptions {
  std::int64_t max_elements = 4096;
};
Graph fold(const Graph& g, const FoldOptions& options = {});

}  // namespace braintrace
