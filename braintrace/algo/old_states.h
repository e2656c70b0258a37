// SPDX-License-Identifier: Apache-2.0
#pragma once
// Losses that read hidden states from before the step, beside their new values
// (docs/etrace.md, Old states).
#include "braintrace/algo/loss_program.h"

namespace braintrace {

// Takes `new_states` out of the program when the loss sees old states only through them.
void drop_unread_old_states(LossProgram& p);

// The adjoint of each hidden state at entry with all new states held fixed, in the order
// of `hidden`. `g`: the program or the same with more outputs; `in`, `outs`: its values.
// Needs: new_states.
std::vector<Value> old_state_adjoints(const LossProgram& p, const Graph& g,
                                      std::span<const HiddenVar> hidden,
                                      const std::vector<Value>& in,
                                      const std::vector<Value>& outs,
                                      const Value& weight);

}  // namespace braintrace
