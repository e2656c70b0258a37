// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop behind etrace_grad: one gradient call per step, chunk, window or segment.
#include <functional>
#include <string>

#include "braintrace/train/learner_impl.h"

namespace braintrace {

// The common leading axis. UserError, naming `caller`, unless there is one.
std::int64_t common_length(const std::vector<Array>& sequences, std::string_view caller);
// 1 when not given. UserError unless it divides the length.
std::int64_t checked_chunk(std::optional<std::int64_t> chunk, std::int64_t length,
                           std::string_view caller);

// May run any number of times: the loss is traced once and its programs are kept. A
// result that is given again is written where it is.
class GradDriver {
 public:
  // Puts the arguments of `count` steps from t on into `args`; `stacked`: behind a time
  // axis.
  using Fetch = std::function<void(std::int64_t t, std::int64_t count, bool stacked,
                                   std::vector<Array>& args)>;

  GradDriver(Learner& learner, TracedFn loss, GradOptions options, std::int64_t length,
             std::string caller = "etrace_grad");

  std::int64_t length() const { return length_; }
  void set_mask(const std::optional<Array>& mask);
  // UserError unless the rule is modulatory and there is one per step that fits.
  void set_modulators(const std::optional<Array>& modulators);
  // Traces the loss for the first steps, unless that is done.
  void prepare(const Fetch& fetch);
  void run(const Fetch& fetch, GradResult& result);

 private:
  double mask(std::int64_t t) const {
    return mask_.empty() ? 1 : mask_[static_cast<std::size_t>(t)];
  }
  // Modulators of the options stand while it lives, those from before afterwards.
  class GivenModulators;
  bool use_windows() const;
  void trace(const Fetch& fetch);
  std::int64_t window_at(std::int64_t t);
  void set_weights(std::int64_t t, std::int64_t count);
  void call(std::int64_t t, std::int64_t count, std::span<const Array> args);
  void note_results(std::int64_t t, std::int64_t count);
  void add_gradients(GradResult& result);
  std::vector<std::string> leaves_wanted() const;
  double denominator() const;
  void finish(GradResult& result);

  // ---- back-propagation in segments (grad_segments.cpp)
  using States = std::vector<Array>;  // of the leaves a program writes
  struct Segment {
    States states;            // at its start
    std::vector<Array> args;  // a source is asked once
  };
  std::int64_t segment_length() const;
  void run_segments(const Fetch& fetch, GradResult& result);
  std::vector<Segment> run_forward(const Fetch& fetch);
  States run_back(std::vector<Segment> segments, GradResult& result);
  std::shared_ptr<Executable> segment_program(std::int64_t steps);
  States states_of(const StepProgram& p) const;
  void restore(const StepProgram& p, const States& states) const;

  Learner::Impl& learner_;
  TracedFn loss_;
  GradOptions options_;
  std::int64_t length_, chunk_ = 1;
  std::string caller_;
  bool windowed_ = false;
  std::vector<std::string> wanted_;
  std::optional<Learner::Impl::TracedLoss> traced_;
  std::int64_t epoch_ = -1;        // of the learner's programs
  std::optional<Type> modulator_;  // the program was written for
  std::shared_ptr<Executable> program_;
  std::vector<Array> args_;
  std::vector<double> mask_, weights_, losses_;
  std::vector<std::vector<Array>> aux_;  // by result, then by call or step
  bool added_ = false;                   // gradients of this run
  bool keeps_losses_ = true;
  double masked_sum_ = 0;
};

}  // namespace braintrace
