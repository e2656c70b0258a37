// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options of the tasks by name, for whoever reads them from text or from another
// language: for_each_option(options, f) calls f(name, field) for every one but the seed.
#include <map>
#include <string>
#include <string_view>

#include "braintrace/train/tasks.h"

namespace braintrace {

using TaskSettings = std::map<std::string, std::string>;  // {"delay", "20"}

// A task by name. UserError names an option the task does not have (and those it has),
// and a value that cannot be read.
Task configured_task(std::string_view name, const TaskSettings& settings,
                     const TaskOptions& options = {});
std::vector<std::string> task_setting_names(std::string_view task);  // UserError

template <class F>
void for_each_option(CopyingOptions& o, F f) {
  f("symbols", o.symbols);
  f("length", o.length);
  f("delay", o.delay);
}

template <class F>
void for_each_option(IntegratorOptions& o, F f) {
  f("steps", o.steps);
  f("dt", o.dt);
  f("bias", o.bias);
  f("noise", o.noise);
}

template <class F>
void for_each_option(DelayedMatchOptions& o, F f) {
  f("channels", o.channels);
  f("steps", o.steps);
  f("rate", o.rate);
  f("background", o.background);
}

template <class F>
void for_each_option(AddingOptions& o, F f) {
  f("steps", o.steps);
}

template <class F>
void for_each_option(DigitsOptions& o, F f) {
  f("scan", o.scan);
  f("noise", o.noise);
}

template <class F>
void for_each_option(EvidenceOptions& o, F f) {
  f("cues", o.cues);
  f("cue_steps", o.cue_steps);
  f("gap_steps", o.gap_steps);
  f("delay_steps", o.delay_steps);
  f("recall_steps", o.recall_steps);
  f("group", o.group);
  f("rate", o.rate);
  f("noise_rate", o.noise_rate);
  f("p_minor", o.p_minor);
}

template <class F>
void for_each_option(PatternOptions& o, F f) {
  f("patterns", o.patterns);
  f("steps", o.steps);
  f("cue_steps", o.cue_steps);
  f("outputs", o.outputs);
  f("harmonics", o.harmonics);
}

template <class F>
void for_each_option(TextOptions& o, F f) {
  f("text", o.text);
  f("steps", o.steps);
}

// Calls f(options, make) with the default options of the task and the function that makes
// it of them. UserError lists the tasks.
template <class F>
auto with_task_options(std::string_view name, F f) {
  if (name == "copying") return f(CopyingOptions{}, copying_task);
  if (name == "integrator") return f(IntegratorOptions{}, integrator_task);
  if (name == "delayed_match") return f(DelayedMatchOptions{}, delayed_match_task);
  if (name == "adding") return f(AddingOptions{}, adding_task);
  if (name == "digits") return f(DigitsOptions{}, digits_task);
  if (name == "evidence") return f(EvidenceOptions{}, evidence_task);
  if (name == "pattern") return f(PatternOptions{}, pattern_task);
  require_task(name);
  return f(TextOptions{}, text_task);
}

// "rows" or "pixels". UserError
DigitsOptions::Scan digits_scan_from_string(std::string_view s);

}  // namespace braintrace
