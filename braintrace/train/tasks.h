// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tasks. Times are in steps of 1 ms where spikes are drawn; rates are per second.
#include <string_view>

#include "braintrace/train/task.h"

namespace braintrace {

// Remember `length` symbols over `delay` blanks, repeat them when the cue comes.
// One-hot inputs: blank, the symbols, the cue. Scored in the last `length` steps.
struct CopyingOptions {
  std::int64_t symbols = 8, length = 10, delay = 20;
  TaskOptions task = {};
};
Task copying_task(const CopyingOptions& options = {});

// Input: white noise around a bias of its own for each sample; target: its running sum.
struct IntegratorOptions {
  std::int64_t steps = 25;
  double dt = 0.04, bias = 0.05, noise = 0.01;  // noise is scaled by 1 / sqrt(dt)
  TaskOptions task = {};
};
Task integrator_task(const IntegratorOptions& options = {});

// A spiking channel is shown, then, after a delay, the same (label 1) or the opposite one
// (label 0). Sample 1/4, delay 1/2, test 1/4 of the steps; scored in the test.
struct DelayedMatchOptions {
  std::int64_t channels = 16, steps = 80;
  double rate = 400, background = 10;
  TaskOptions task = {};
};
Task delayed_match_task(const DelayedMatchOptions& options = {});

// Inputs: a number in [0, 1) and a marker that is 1 at two steps; target at the last
// step: the sum of the two marked numbers.
struct AddingOptions {
  std::int64_t steps = 50;
  TaskOptions task = {};
};
Task adding_task(const AddingOptions& options = {});

// Drawn digits, shifted and noisy, shown row by row or pixel by pixel; the label is asked
// for at the last step.
struct DigitsOptions {
  enum class Scan { rows, pixels } scan = Scan::rows;
  double noise = 0.2;
  TaskOptions task = {};
};
Task digits_task(const DigitsOptions& options = {});

// Cues left or right, one after another, then a delay, then recall: were more of them
// left (label 1)? Four groups of spiking inputs: left, right, recall, noise.
struct EvidenceOptions {
  std::int64_t cues = 7, cue_steps = 20, gap_steps = 10, delay_steps = 60,
               recall_steps = 20, group = 10;
  double rate = 200, noise_rate = 50, p_minor = 0.3;
  TaskOptions task = {};
};
Task evidence_task(const EvidenceOptions& options = {});

// One of `patterns` is cued at the start; the target is that pattern, a sum of sinusoids.
struct PatternOptions {
  std::int64_t patterns = 2, steps = 50, cue_steps = 5, outputs = 2, harmonics = 4;
  TaskOptions task = {};
};
Task pattern_task(const PatternOptions& options = {});

// Predict the next character. One-hot inputs over the characters of the text; the test
// split is its last tenth. An empty text stands for a built-in one.
struct TextOptions {
  std::string text = {};
  std::int64_t steps = 32;
  TaskOptions task = {};
};
Task text_task(const TextOptions& options = {});

// With default options, by name: copying, integrator, delayed_match, adding, digits,
// evidence, pattern, text. UserError lists them.
Task make_task(std::string_view name, const TaskOptions& options = {});
std::vector<std::string> task_names();
void require_task(std::string_view name);  // UserError unless it is one of them

}  // namespace braintrace
