// SPDX-License-Identifier: Apache-2.0
#pragma once
// An optimiser inside the program of a step: parameters are moved in the pass that makes
// their gradient, and gradients are stored nowhere.
#include "braintrace/algo/step_program.h"
#include "braintrace/train/optimizers.h"

namespace braintrace {

// Rules that differ in their learning rate alone share programs: it is an input of them.
bool same_but_rate(const UpdateRule& a, const UpdateRule& b);

// Which of the program's leaves a gradient belongs to.
std::size_t leaf_of(const StepProgram& p, const std::string& gradient);

// `p` with the parameters after an update in place of its gradients. Moments come in the
// order of the gradients, for each in that of moment_names(rule).
//   Needs: a program with a gradient and without signals.
StepProgram with_update(const StepProgram& p, const UpdateRule& rule);

}  // namespace braintrace
