// SPDX-License-Identifier: Apache-2.0
// What rules that do not trace position by position ask of a relation.
#include <algorithm>
#include <set>

#include "braintrace/algo/relation_writer.h"
#include "braintrace/etrace/position_flow.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {

bool RelationWriter::is_anchored() const {
  return !rule_.anchored || rule_.anchored(signature());
}

std::vector<WeightVar> RelationWriter::leaves() const {
  std::vector<WeightVar> out;
  std::set<ValueId> seen;
  for (const Trainable& t : relation_.trainables)
    for (const WeightVar& w : t.prologue.parameters)
      if (seen.insert(w.id).second) out.push_back(w);
  return out;
}

std::vector<bool> RelationWriter::reads_data() const {
  const auto builder = Builder::create();
  std::vector<Value> in;
  for (const Type& t : types_.in) in.push_back(builder->input(t));
  const std::vector<Value> grads = op_gradient(in, builder->input(types_.out[0]));
  std::vector<bool> out(grads.size(), false);
  if (rule_.x < 0) return out;
  const ValueId x = in[static_cast<std::size_t>(rule_.x)].id();
  const Graph g = builder->finish(grads);
  const std::vector<bool> depends = depends_on(g, std::vector{x});
  for (std::size_t i = 0; i < grads.size(); ++i) out[i] = depends[g.outputs()[i].index];
  return out;
}

// The weight operand as a function of one of the leaves behind it.
Value RelationWriter::operand_value(const StepValues& v, const Trainable& t,
                                    const WeightVar& leaf,
                                    const Value& leaf_value) const {
  const auto& all = t.prologue.parameters;
  const bool behind = std::any_of(all.begin(), all.end(),
                                  [&](const WeightVar& w) { return w.id == leaf.id; });
  if (!behind) return v.at(t.operand);
  if (t.prologue.is_identity()) return leaf_value;
  const SubProgram sub = prologue_program(t);
  std::vector<Value> in;
  for (ValueId id : sub.constants) in.push_back(v.at(id));
  for (const WeightVar& w : all) in.push_back(w.id == leaf.id ? leaf_value : v.at(w.id));
  return inline_graph(sub.graph, in)[0];
}

Graph RelationWriter::leaf_program(const WeightVar& leaf) const {
  const auto builder = Builder::create();
  StepValues v;
  for (ValueId id : reads()) v.emplace(id, builder->input(info_.program().type(id)));
  const Value moved = builder->input(info_.program().type(leaf.id));
  std::vector<Value> in;
  for (ValueId id : node_.inputs) in.push_back(v.at(id));
  const auto weights = rule_.weights(signature());
  for (const Trainable& t : relation_.trainables) {
    const auto i = static_cast<std::size_t>(weights[weight_position(t.key)].input);
    in[i] = operand_value(v, t, leaf, moved);
  }
  const Value y = builder->record(*node_.op, in, node_.attrs, node_.loc)[0];
  std::vector<Value> tail_in;
  for (ValueId id : relation_.tail_constants[tail_]) tail_in.push_back(v.at(id));
  tail_in.push_back(y);
  const std::vector<Value> members = inline_graph(relation_.tails[tail_], tail_in);
  return builder->finish(std::vector{group_.concat_hidden(members)});
}

Value RelationWriter::back_to_y(const StepValues& v, const Value& ct) const {
  const Graph& tail = relation_.tails[tail_];
  Values in;
  for (ValueId id : relation_.tail_constants[tail_]) in.push_back(v.at(id));
  in.push_back(v.at(relation_.y));
  const auto builder = Builder::create();
  Values written;
  for (const Type& t : tail.input_types()) written.push_back(builder->input(t));
  const Graph to_group =
      builder->finish(std::vector{group_.concat_hidden(inline_graph(tail, written))});
  std::vector<bool> active(in.size(), false);
  active.back() = true;
  const std::vector<Tangent> cts = {ct};
  return materialize(vjp_values(to_group, active, in, cts).cotangents.back(), y_type());
}

LeafGradients RelationWriter::back_to_leaves(const StepValues& v,
                                             const Value& ct_y) const {
  return pull_back(v, op_gradient(node_inputs(v), ct_y), PrologueRule::pull_back);
}

bool RelationWriter::keeps_samples_apart() const {
  const std::int64_t samples = group_.varshape()[0];
  if (y_type().rank() == 0 || y_type().shape[0] != samples || crosses_while())
    return false;
  const GraphIndex tail(relation_.tails[tail_]);
  const Influence reached =
      influence_of(tail, std::vector{tail.graph().inputs().back()}, {samples},
                   {.cross_etp = true, .cross_products = true});
  if (!reached.cuts.empty()) return false;
  const auto outs = tail.graph().outputs();
  return std::all_of(outs.begin(), outs.end(), [&](ValueId v) {
    const auto at = reached.reached.find(v);
    if (at == reached.reached.end()) return true;
    const Alignment& a = at->second;
    return !a.flat && !a.axes.empty() && a.axes[0] == 0;
  });
}

// An op with data sees one sample at a time. Otherwise (a weight without data, samples
// not on the first axis) a sample's share is what its own positions give.
std::vector<Value> RelationWriter::weight_gradient_per_sample(const StepValues& v,
                                                              const Value& ct) const {
  const std::int64_t samples = ct.dim(0);
  auto leads = [&](const Type& t) { return t.rank() > 0 && t.shape[0] == samples; };
  const auto x = static_cast<std::size_t>(std::max(rule_.x, 0));
  if (rule_.x < 0 || !leads(types_.in[x]) || !leads(types_.out[0])) {
    const Shape column(static_cast<std::size_t>(ct.rank() - 1), 1);
    const Value unit = unit_vectors({ct.dtype(), {samples}});
    return on_lanes({unit}, [&](const Values& one) {
      return weight_gradient(v, ct * reshape(one[0], inserted(column, 0, samples)));
    });
  }
  const Value xs = reshape(v.at(node_.inputs[x]), inserted(types_.in[x].shape, 1, 1));
  const Value cts = reshape(ct, inserted(types_.out[0].shape, 1, 1));
  return on_lanes({xs, cts}, [&](const Values& one) {
    std::vector<Value> in = node_inputs(v);
    in[x] = one[0];
    return op_gradient(in, one[1]);
  });
}

}  // namespace braintrace
