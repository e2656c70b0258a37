// SPDX-License-Identifier: Apache-2.0
#pragma once
// A user's loss function, traced once: a program of its arguments and of the states, with
// the compiled step spliced in where the function called the learner.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "braintrace/algo/relation_writer.h"
#include "braintrace/model/trace_scope.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

// How the compiled step is put into a trace.
struct SpliceOptions {
  bool perturb = true;       // h_out := h_out + p, for signals of this step
  bool window = false;       // arguments have a leading time axis: a scan over it
  bool detach_while = true;  // reverse mode stops in front of loops of unknown length
  bool old_states = false;   // what the loss reads of old states is asked for
  std::optional<std::int64_t> lanes = {};  // the step of one lane, mapped over axis 0
};

// One state leaf of a traced program.
struct ProgramLeaf {
  State* state = nullptr;
  std::size_t leaf = 0;
  std::string name;  // slash path
  bool parameter = false;
  std::optional<std::size_t> exit = {};  // output that holds it afterwards, when written
};

// A value of the step in a traced program. Under lanes and windows, values that do not
// depend on the lane or on time have no such axis.
struct ExposedRead {
  ValueId id;
  std::size_t output;
  bool has_lane = false, has_time = false;
};

// Inputs:  [arguments | state leaves | one perturbation per hidden state]
// Outputs: [loss, when there is one | results | exits | reads | modulator | new states]
struct LossProgram {
  Graph graph;
  std::size_t num_args = 0;
  bool has_loss = false;
  std::size_t num_results = 0;
  std::vector<ProgramLeaf> leaves;
  std::vector<Type> perturbations;  // in the order of info.hidden; empty without
  std::vector<ExposedRead> reads;
  // Outputs with the hidden states as their readers see them after the step, in the order
  // of info.hidden. Empty unless the loss reads an old state on a way that passes none.
  std::vector<std::size_t> new_states;
  std::optional<std::size_t> modulator = {};  // output that holds it, when one was given

  std::size_t first_result() const { return has_loss ? 1 : 0; }
  std::size_t first_perturbation() const { return num_args + leaves.size(); }
};

// What a traced function gives: a loss and more, or outputs alone.
struct LossResult {
  std::optional<Value> loss;
  Values results;
};
using TracedFn = std::function<LossResult(const Values&)>;

class LossTracer {
 public:
  // `reads`: values of the step's program the learning rule needs.
  LossTracer(const ETraceGraph& graph, std::vector<ValueId> reads, SpliceOptions options);
  ~LossTracer();

  // What learner(x) does while a loss is traced. UserError on a second call and on
  // arguments of other types than the compiled ones. `modulator`: the signal of this step
  // for a modulatory rule.
  Values splice(const Values& args, const std::optional<Value>& modulator = {});
  // The loss must be a float scalar (a vector of one entry per step for windows).
  // UserError when the function did not call the learner.
  LossProgram run(const std::vector<Type>& args, const TracedFn& fn,
                  std::string_view caller);

 private:
  struct Splice;
  Values entry_leaves(TraceScope& scope) const;
  void check_args(const Values& args) const;
  void store_exits(TraceScope& scope, const Values& exits) const;
  void keep_new_states(const Values& out);
  Values one_step(const Values& args, const Values& leaves);
  Values windowed(const Values& args, const Values& leaves);
  LossProgram finish(TraceScope& scope, const Values& args, const LossResult& result);

  const ETraceGraph& graph_;
  std::vector<ValueId> reads_;
  SpliceOptions options_;
  Graph step_;  // the program that is spliced; outputs: [outs | exits | reads]
  TraceScope* scope_ = nullptr;
  std::unique_ptr<Splice> done_;
};

}  // namespace braintrace
