// SPDX-License-Identifier: Apache-2.0
#pragma once
// Many steps with fixed weights as one program. The steps themselves run one after
// another; everything that does not feed the next state runs for all steps at once, and
// past credit travels back element by element (docs/etrace.md, Windows).
#include "braintrace/algo/step_program.h"

namespace braintrace {

struct WindowRequest {
  std::int64_t steps = 1;
  std::vector<std::string> weights = {};  // as StepRequest
  bool carry = true;   // traces after the window are wanted; otherwise they come out zero
  bool fresh = false;  // traces before the window are zero
};

// The losses of several steps as the one loss of a window: what the multi-step estimator
// and back-propagation through time differentiate. Needs: `step` traced without
// perturbations.
LossProgram windowed(const LossProgram& step, std::int64_t steps);

// The single-step gradients of several steps, summed: the numbers of as many runs of
// assemble(). Arguments, weights of the loss and rule inputs have a leading time axis,
// losses and results come out stacked. Where credit travels back through the window,
// traces that are zero before or after it are no input or output. Needs: `step` traced
// with perturbations, no lanes.
StepProgram assemble_window(const CompiledRule& rule, const LossProgram& step,
                            const WindowRequest& request);

// Bytes one step keeps inside a window, roughly: what windows are sized by.
double bytes_per_step(const LossProgram& step);
// At most `most` steps, at least one. `even`: windows of one length, which need one
// program, where no more than a third more of them divide the sequence.
std::int64_t steps_per_window(std::int64_t length, std::int64_t most, bool even = true);

}  // namespace braintrace
