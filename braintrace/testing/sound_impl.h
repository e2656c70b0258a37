// SPDX-License-Identifier: Apache-2.0
#pragma once
// One model on one sequence, under any rule, and what comes of comparing gradients.
#include <map>

#include "braintrace/testing/sound.h"

namespace braintrace::testing::internal {

// The states of a step, to start from again and again.
class Start {
 public:
  explicit Start(const StepModel& step) {
    for (const StepState& s : step.states)
      for (std::size_t k = 0; k < s.in.size(); ++k)
        saved_.push_back({s.state, k, s.state->stored(k)});
  }
  void operator()() const {
    for (const auto& [state, leaf, value] : saved_) state->store(leaf, value);
  }

 private:
  struct Saved {
    State* state;
    std::size_t leaf;
    Array value;
  };
  std::vector<Saved> saved_;
};

class SoundBench {
 public:
  explicit SoundBench(const SoundSubject& s);

  // Compiled, with the states of the subject.
  Learner make(const Algorithm& a, History history = History::direct) const;
  StateDict online(Learner& l, std::int64_t steps, std::int64_t window) const;
  StateDict bptt(std::int64_t steps) const;
  std::vector<StepInputs> sequence(std::int64_t steps) const;
  StepLoss step_loss() const;
  void start() const { start_(); }
  Learner& d_rtrl() { return learner_; }
  const ETraceGraph& graph() const { return learner_.graph(); }

  // Every leaf, or those that `wanted` accepts. Parameters that were refused are left
  // out.
  using Wanted = std::function<bool(const std::string& leaf)>;
  void compare(const std::string& what, const StateDict& got, const StateDict& want,
               const Wanted& wanted = {});
  void fail(const std::string& what);

  SoundResult result;

 private:
  bool is_refused(const std::string& leaf) const;

  const SoundSubject& subject_;
  Learner learner_;
  Start start_;
};

// The parameter behind a leaf.
bool is_of(const std::string& leaf, const Path& parameter);
double largest(const StateDict& d);

}  // namespace braintrace::testing::internal
