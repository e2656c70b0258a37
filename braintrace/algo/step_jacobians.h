// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program of all Jacobians one step hands to a learning rule.
#include "braintrace/algo/step_terms.h"

namespace braintrace {

// What stands for the hidden-to-hidden Jacobian.
enum class HiddenJacobian {
  as_config,  // what the context's config puts for D
  full        // every position with every other
};

// Inputs: the values `reads` of the step's program. Outputs: [x | df | D].
struct JacobianProgram {
  Graph graph;
  std::vector<ValueId> reads;
  std::vector<std::vector<std::size_t>> x;               // relations that read each
  std::vector<std::pair<std::size_t, std::int64_t>> df;  // (relation, group)
  std::size_t num_groups = 0;
};
JacobianProgram jacobian_program(const RuleContext& context, HiddenJacobian hidden);

}  // namespace braintrace
