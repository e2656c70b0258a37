// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a learning rule can be asked for. As with CompileOptions, every difference from
// braintrace 0.2.6 is one named option, and `compat()` is a preset of them.
#include <string>
#include <string_view>
#include <vector>

namespace braintrace {

// Parameters without a relation: the gradient of the newest step, or nothing.
enum class PlainParams { newest_step, zero };
// The newest step's gradient: exact for every path, or as the published rule has it.
enum class Newest { exact, trace };
// Adjoint of a hidden state with the other members of its group held fixed, or not.
enum class SignalAdjoint { direct, total };
// Past credit inside a window: cut at mixing ops, or through the whole step.
enum class History { direct, deep };
// Between parameter and weight operand: pulled back, or ignored (hooks of the op aside).
enum class PrologueRule { pull_back, drop };
// What the bias correction of factorised traces counts.
enum class BiasCorrection { trace_steps, calls };
// When a filtered trace moves on: at every step, or only when a gradient is taken.
enum class KappaAdvance { every_step, on_gradient };
// What a loss reads of states from before the step meets their traces, or is lost.
enum class OldStates { credit, drop };
// The parameter-shaped factor of a random projection: one per sample, or one for all.
enum class UoroTheta { per_sample, shared };

struct LearningOptions {
  PlainParams plain_params = PlainParams::newest_step;
  Newest newest = Newest::exact;
  SignalAdjoint signal = SignalAdjoint::direct;
  History history = History::direct;
  PrologueRule prologue = PrologueRule::pull_back;
  BiasCorrection bias_correction = BiasCorrection::trace_steps;
  KappaAdvance kappa_advance = KappaAdvance::every_step;
  OldStates old_states = OldStates::credit;
  UoroTheta uoro_theta = UoroTheta::per_sample;
  bool check_finite = false;  // name the parameter whose gradient is not

  friend bool operator==(const LearningOptions&, const LearningOptions&) = default;
};

// The reference's behaviour, quirks included.
LearningOptions compat(LearningOptions base);
// Sets one named option from text. Returns false when there is no such name here;
// UserError lists the values when the value is unknown.
bool set_option(LearningOptions& options, std::string_view name, std::string_view value);
std::vector<std::string> learning_option_names();

}  // namespace braintrace
