// SPDX-License-Identifier: Apache-2.0
// Traces of a relation as its parameters see them.
#include <algorithm>

#include "braintrace/algo/relation_writer.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/axis.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/trace_layout.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {
namespace {

bool ends_with(const Shape& s, const Shape& tail) {
  return s.size() >= tail.size() && std::equal(tail.rbegin(), tail.rend(), s.rbegin());
}

}  // namespace

// The op's inputs with weights made of their leaves. Data is not asked for.
std::vector<Value> RelationWriter::weight_inputs(const StepValues& leaves) const {
  std::vector<Value> in;
  for (const Type& t : types_.in) in.emplace_back(zeros(t.shape, t.dtype));
  const auto weights = rule_.weights(signature());
  for (const Trainable& t : relation_.trainables) {
    const SubProgram sub = prologue_program(t);
    if (!sub.constants.empty()) continue;
    std::vector<Value> args;
    for (const WeightVar& w : t.prologue.parameters) args.push_back(leaves.at(w.id));
    in[static_cast<std::size_t>(weights[weight_position(t.key)].input)] =
        t.prologue.is_identity() ? args[0] : inline_graph(sub.graph, args)[0];
  }
  return in;
}

// [lanes..., *operand] -> [lanes..., *leaf] for every leaf behind the operand.
std::vector<Value> RelationWriter::leaf_traces(const StepValues& leaves,
                                               const Trainable& t, const Value& trace,
                                               PrologueRule rule) const {
  const Shape& operand = info_.program().type(t.operand).shape;
  const bool drop = rule == PrologueRule::drop && !is_hook(t.key);
  const bool same = t.prologue.is_identity() || drop || t.prologue.dynamic;
  const Shape whole = trace.shape();
  if (same || !ends_with(whole, operand)) return {trace};
  const Shape lead(whole.begin(),
                   whole.end() - static_cast<std::ptrdiff_t>(operand.size()));
  Shape flat = operand;
  flat.insert(flat.begin(), num_elements(lead));
  const Values pulled = on_lanes({reshape(trace, flat)}, [&](const Values& one) {
    return leaf_gradients(leaves, t, one[0], rule);
  });
  std::vector<Value> out;
  for (const Value& p : pulled) {
    const Shape leaf = p.shape();
    Shape shape = lead;
    shape.insert(shape.end(), leaf.begin() + 1, leaf.end());
    out.push_back(reshape(p, shape));
  }
  return out;
}

std::vector<LeafTrace> RelationWriter::parameter_traces(const StepValues& leaves,
                                                        const std::vector<Value>& slots,
                                                        PrologueRule rule) const {
  std::vector<Value> traces;  // states in front
  for (const Value& s : slots) traces.push_back(move_axis(s, s.rank() - 1, 0));
  if (rule_.effective) traces = traces_per_weight(site(weight_inputs(leaves)), traces);
  std::vector<LeafTrace> out;
  for (const Trainable& t : relation_.trainables) {
    const Value& trace = traces[weight_position(t.key)];
    const std::vector<Value> views = leaf_traces(leaves, t, trace, rule);
    for (std::size_t i = 0; i < views.size(); ++i)
      out.push_back(
          {t.key, t.prologue.parameters[i], move_axis(views[i], 0, views[i].rank() - 1)});
  }
  return out;
}

}  // namespace braintrace
