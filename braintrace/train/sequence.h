// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the sequence drivers take and give (Learner::etrace_grad, etrace_evolve).
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braintrace/algo/loss_program.h"

namespace braintrace {

// Arguments of step t, made when they are needed: memory does not grow with the length.
struct SequenceSource {
  std::int64_t length = 0;
  std::function<std::vector<Array>(std::int64_t t)> at;
};

using PairLoss = std::function<Value(const Value& x, const Value& y)>;

enum class Reduction { mean, sum };
// per_step: as the function returned them; masked: times the mask; scalar: their sum, or
// mean.
enum class LossOutput { per_step, masked, scalar };

struct GradOptions {
  // One factor per step for its loss; states and traces move on regardless.
  std::optional<Array> mask = {};
  // k >= 2: the function gets k steps at once, calls learner(MultiStepData{x}) and
  // returns k losses. Needs vjp_method multi-step; BPTT goes back to the chunk's first
  // step.
  std::optional<std::int64_t> chunk_size = {};
  // Steps that run as one program, with the same numbers as step by step (multi-step
  // rules: as windows of that many steps). 0: chosen from window_bytes
  // (steps_per_window); 1: step by step. BPTT: always the whole sequence. Rules with
  // small traces (pp_prop) take fewer where that keeps them in the cache. Under vmap
  // all but BPTT go step by step: UserError for multi-step rules above 1.
  std::int64_t window = 0;
  std::int64_t window_bytes = std::int64_t{64} << 20;
  // False: the sequence ends with this call. Its own windows still hand traces on; the
  // last one leaves zeros, which cost nothing where credit travels back.
  bool carry_traces = true;
  // Parameter leaves or whole parameters, slash paths; empty: all.
  std::vector<std::string> weights = {};
  Reduction reduction = Reduction::mean;  // divides by max(sum(mask), 1)
  LossOutput loss_output = LossOutput::per_step;
  // Called with every step's loss, unmasked; then the result holds no losses, so that
  // nothing grows with the sequence.
  std::function<void(std::int64_t t, double loss)> loss_sink = {};
  // After every step or window: steps done. Return false to stop early with what there
  // is.
  std::function<bool(std::int64_t done, std::int64_t total)> progress = {};
  // Modulatory rules: one modulator per step, behind a leading time axis, in place of the
  // standing one (Learner::set_modulator). Runs step by step.
  std::optional<Array> modulators = {};
};

struct GradResult {
  StateDict grads;         // by slash path of the leaf
  Array losses;            // as loss_output says
  std::vector<Array> aux;  // stacked over calls
  std::int64_t steps = 0;  // done; less than the length when stopped early
};

struct EvolveOptions {
  std::optional<std::int64_t> chunk_size = {};
  bool return_outputs = false;
};

// Entry t of the leading axis.
Array row(const Array& a, std::int64_t t);
// `count` entries from t on.
Array rows(const Array& a, std::int64_t t, std::int64_t count);
// Arrays of one type behind a new leading axis.
Array stacked(const std::vector<Array>& parts);

}  // namespace braintrace
