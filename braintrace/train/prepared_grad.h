// SPDX-License-Identifier: Apache-2.0
#pragma once
// etrace_grad for sequences of one shape, prepared once: the loss is traced, programs and
// memory are kept. For calling it again and again with the same loss function; values the
// function captured stay as they were when it was traced.
#include "braintrace/train/learner.h"

namespace braintrace {

class PreparedGrad {
 public:
  // UserError after the end of the learner. `loss` must stay callable: a learner that
  // changes (batch size, feedback matrices) has it traced anew.
  PreparedGrad(Learner& learner, TracedFn loss, const std::vector<Array>& sequences,
               const GradOptions& options = {});
  ~PreparedGrad();
  PreparedGrad(PreparedGrad&&) noexcept;

  // Have these sequences the prepared shapes?
  bool fits(const std::vector<Array>& sequences) const;
  // The numbers of etrace_grad, bit by bit. UserError when a sequence has another shape
  // than the prepared one.
  GradResult grad(const std::vector<Array>& sequences);
  // The same into a result of an earlier call, whose memory is used again: from the third
  // call on nothing is allocated, unless the function returns more than a loss.
  void grad_into(const std::vector<Array>& sequences, GradResult& result);
  // In place of the options' mask, from the next call on.
  void set_mask(const std::optional<Array>& mask);
  // In place of the options' modulators, from the next call on; nullopt: the standing one
  // of the learner.
  void set_modulators(const std::optional<Array>& modulators);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braintrace
