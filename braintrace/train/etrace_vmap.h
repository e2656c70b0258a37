// SPDX-License-Identifier: Apache-2.0
#pragma once
// A learner of one lane, mapped over many: compile(..., {.batch_size = n, .vmap = true})
// under the name of the reference. Lanes share the parameters; states and traces have
// one per lane; gradients are summed over lanes.
#include "braintrace/train/learner.h"

namespace braintrace {

class ETraceVmap : public Learner {
 public:
  // Axis 0 of the examples is the lane.
  ETraceVmap(Module& model, const Algorithm& algorithm,
             const std::vector<Array>& examples, std::int64_t lanes,
             const LearnerOptions& options = {});

  std::int64_t num_lanes() const { return *options().batch_size; }
  Module& module() const { return model(); }
};

}  // namespace braintrace
