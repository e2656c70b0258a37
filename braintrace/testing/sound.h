// SPDX-License-Identifier: Apache-2.0
#pragma once
// Is learning right? One model, one sequence, held against back-propagation through time,
// against back-propagation of the cut program, and against itself in windows.
#include "braintrace/testing/bptt.h"
#include "braintrace/train/learner.h"

namespace braintrace::testing {

struct SoundSubject {
  Module* model = nullptr;
  LearnerOptions options = {};  // f64; the batch size, the compiler's options
  std::vector<Array> inputs;    // one argument per step
  std::vector<Array> targets;   // one per step
  std::function<Value(const Value& y, const Value& target)> loss;
  std::function<void()> load = {};  // sets states after compile; empty: left as they are
};

struct SoundCounts {
  std::int64_t exact = 0, approximate = 0, dense = 0, local = 0, refused = 0;
  SoundCounts& operator+=(const SoundCounts& o);
};

struct SoundResult {
  std::string name;
  std::string failure;  // empty: everything held
  bool live = false;    // some trace was not zero after several steps
  double worst = 0;     // largest |a - b| as a share of what is allowed
  SoundCounts counts;
  std::vector<std::string> notes;
  bool passed() const { return failure.empty(); }
};

struct SoundOptions {
  std::vector<std::int64_t> steps = {1, 2, 5, 8};
  std::int64_t window = 3;  // 0: single steps alone
  bool deep = true;         // also deep history, over the last of these lengths
};

// D_RTRL over the first steps: exact parameters against back-propagation, all of them
// against the judge, windows against single steps. Throws what the compiler throws;
// differences, and errors at the gradient, are in the result.
SoundResult check_sound(const std::string& name, const SoundSubject& subject,
                        const SoundOptions& options = {});

// Every rule: at T = 1 the gradient of back-propagation, or the published closed form
// where the signal is not the gradient; over `steps` the same in windows as step by step.
// Rules that refuse the model when compiled are in the notes; a rule that does so at its
// gradient fails, but for whole windows through a while loop.
SoundResult check_rules(const std::string& name, const SoundSubject& subject,
                        std::int64_t steps, std::int64_t window);

// Both, on the model and the data of a recorded run in the default mode. Never throws.
SoundResult check_sound_case(const std::string& name, const std::string& text);

std::string describe(const SoundResult& r);

}  // namespace braintrace::testing
