// SPDX-License-Identifier: Apache-2.0
#pragma once
// A learner as one header without dependencies: the step, its loss, the gradient, the
// traces and the update of the weights (docs/export.md).
#include "braintrace/io/export_header.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/optimizers.h"

namespace braintrace {

struct LearnerExport {
  std::string name = "learner";             // namespace (C++) or prefix (C)
  std::vector<std::string> arguments = {};  // of the loss; none: "x", "target", "a2" ..
  std::vector<std::string> results = {};    // what the loss gives besides; "y", "r1", ..
  double learning_rate = 0;                 // 0: gradients only, until the field is set
  // Instead of plain descent; its lr then is the learning rate, and its moments live in
  // the header.
  std::optional<UpdateRule> optimizer = {};
  ExportLanguage language = ExportLanguage::cpp17;
};

// Starts from the learner's present weights, states, traces and counters. Every step runs
// the rule once, then parameter -= learning_rate * gradient. The field `loss_weight` is
// the weight of the step's loss: 0 where there is no target, and an optimiser rests. With
// one, grad_<name> is the step it takes, in place of the gradient. What the rule needs
// from outside (a modulator) becomes an argument. Compile the learner without a batch for
// a device that sees one sample at a time. UserError as trace_loss and export_header; for
// names that are no fields or too many, and a learning rate that is negative, not finite
// or given beside an optimiser.
std::string export_learner(Learner& learner, const TracedFn& loss,
                           const std::vector<Array>& examples,
                           const LearnerExport& options = {});

}  // namespace braintrace
