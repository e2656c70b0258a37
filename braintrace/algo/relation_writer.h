// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes, into the program under construction, what one relation contributes to a rule in
// one of its groups: instant terms, rolled traces, contractions and weight gradients.
// Driven by the op's eligibility rule alone (docs/etrace.md).
#include <map>
#include <vector>

#include "braintrace/algo/learning_options.h"
#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

// Values of a step's program, by id, in the program that is being written.
using StepValues = std::map<ValueId, Value>;
// Gradients by slash path of the parameter leaf. Absent: nothing flows.
using LeafGradients = std::map<std::string, Value>;

void add_to(LeafGradients& sum, const std::string& leaf, const Value& gradient);
void add_to(LeafGradients& sum, const LeafGradients& more);
std::string leaf_name(const WeightVar& w);

// The trace of one parameter leaf behind a weight operand: (..., *leaf, width).
struct LeafTrace {
  std::string key;  // of the operand
  WeightVar leaf;
  Value value;
};

class RelationWriter {
 public:
  // `tail`: which of the relation's groups. `info`: the program its ids belong to.
  RelationWriter(const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
                 const HiddenParamOpRelation& relation, std::size_t index,
                 std::size_t tail);

  const HiddenParamOpRelation& relation() const { return relation_; }
  const HiddenGroup& group() const { return group_; }
  std::size_t index() const { return index_; }  // of the relation
  std::int64_t num_slots() const { return num_slots_; }
  std::size_t num_operands() const { return rule_.weights(signature()).size(); }
  // "weight", "bias", ...; "effective", ... when slots are not the op's weights.
  std::string slot_key(std::int64_t slot) const;
  const Type& y_type() const { return types_.out[0]; }
  // Of what a factorised rule filters; nullopt for an op without data.
  std::optional<Type> x_type() const;

  // May a widened (SnAp) trace follow this op: does each entry drive one position?
  bool is_anchored() const;
  // Leaves behind the op's weight operands, each once.
  std::vector<WeightVar> leaves() const;

  // Ids the methods below read.
  std::vector<ValueId> reads() const;
  // Of those, what a weight gradient and its pull-back read beside the data.
  std::vector<ValueId> weight_reads() const;

  // Trace of one slot: (trace..., width).
  Type trace(std::int64_t slot, std::int64_t width) const;
  // (*varshape, num_state): one all-ones product through the tail.
  Value df(const StepValues& v) const;
  // Does the tail run through a loop of unknown length, which reverse mode cannot cross?
  bool crosses_while() const;
  // The part of df that runs through such loops.
  Value df_through_whiles(const StepValues& v) const;
  // df (x) x for a df of any width.
  Value instant(const StepValues& v, std::int64_t slot, const Value& df) const;
  // D eps; D is (*varshape, M, M). Entries outside the pattern, flat (M, M), are zero and
  // not read; an empty one: all are read.
  Value carried(std::int64_t slot, const Value& d, const Value& eps,
                const std::vector<bool>& pattern = {}) const;
  // Sum over states of signal times trace, per weight operand of the op, in rule order.
  std::vector<Value> contracted(const StepValues& v, const Value& signal,
                                const std::vector<Value>& eps) const;
  // Per weight operand: does its gradient depend on the data? (A bias' does not.)
  std::vector<bool> reads_data() const;
  // The op's own weight gradient for a cotangent of y; `x` stands in for what
  // x_representation() gives.
  std::vector<Value> weight_gradient(const StepValues& v, const Value& ct_y,
                                     const std::optional<Value>& x = {}) const;
  // The same for each sample of a group-shaped cotangent, samples on axis 0 of the group
  // and of the results.
  std::vector<Value> weight_gradient_per_sample(const StepValues& v,
                                                const Value& ct) const;
  // The cotangent of y for a group-shaped one, through the whole tail.
  Value back_to_y(const StepValues& v, const Value& ct) const;
  // What a cotangent of y gives to the leaves, through op and prologue.
  LeafGradients back_to_leaves(const StepValues& v, const Value& ct_y) const;
  // Samples lie on axis 0 of y and of the group, and none moves another on the way.
  bool keeps_samples_apart() const;
  // (values of reads(), one leaf) -> (*varshape, num_state): how a parameter moves the
  // group, through prologue, op and the whole tail.
  Graph leaf_program(const WeightVar& leaf) const;
  // From weight operands to parameter leaves.
  LeafGradients pull_back(const StepValues& v, const std::vector<Value>& operands,
                          PrologueRule rule) const;
  // Traces of all slots as traces of parameters, where the trace has the operand's shape
  // and the prologue reads parameters only; else as they are. `leaves`: by id.
  std::vector<LeafTrace> parameter_traces(const StepValues& leaves,
                                          const std::vector<Value>& slots,
                                          PrologueRule rule) const;
  // What a factorised rule filters in place of x; nullopt for an op without data.
  std::optional<Value> x_representation(const StepValues& v) const;

 private:
  Value df_of(const Graph& tail, const StepValues& v) const;
  Signature signature() const { return {types_.in, types_.out, node_.attrs}; }
  std::vector<Value> node_inputs(const StepValues& v) const;
  Site site(std::span<const Value> in) const;
  Value on_trace(std::int64_t slot, const Value& v) const;
  Value without_lead(const Value& v) const;
  Value by_product(std::int64_t slot, const Value& m, const Value& eps) const;
  std::vector<Value> op_gradient(const std::vector<Value>& in, const Value& ct) const;
  Value meet(std::int64_t slot, const Value& signal, const Value& eps) const;
  Value operand_value(const StepValues& v, const Trainable& t, const WeightVar& leaf,
                      const Value& leaf_value) const;
  std::vector<Value> through_effective(std::span<const Value> in,
                                       const std::vector<Value>& slots) const;
  std::size_t weight_position(const std::string& key) const;
  bool is_hook(const std::string& key) const;
  std::vector<Value> leaf_gradients(const StepValues& v, const Trainable& t,
                                    const Value& ct, PrologueRule rule) const;
  SubProgram prologue_program(const Trainable& t) const;
  std::vector<Value> weight_inputs(const StepValues& leaves) const;
  std::vector<Value> leaf_traces(const StepValues& leaves, const Trainable& t,
                                 const Value& trace, PrologueRule rule) const;

  const ModuleInfo& info_;
  const HiddenParamOpRelation& relation_;
  const HiddenGroup& group_;
  std::size_t index_, tail_;
  const Node& node_;
  const EtpRule& rule_;
  NodeTypes types_;
  std::int64_t num_slots_;
};

// The same program with nothing flowing back, or forward, through loops of unknown
// length.
Graph detached_whiles(const Graph& g);

// The slice of one state: (..., M) -> (...).
Value state_slice(const Value& v, std::int64_t a);
// A signal over the last, or first, axes of a sensitivity: (*leaf, *s) or (*s, *leaf) ->
// (*leaf).
Value contracted_last(const Value& sensitivity, const Value& s);
Value contracted_first(const Value& sensitivity, const Value& s);

}  // namespace braintrace
