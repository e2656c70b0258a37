// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/step_terms.h"

#include <set>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

Array index_array(const std::vector<std::int64_t>& values) {
  Array a = zeros({static_cast<std::int64_t>(values.size())}, DType::i32);
  auto* p = a.mutable_data<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    p[i] = static_cast<std::int32_t>(values[i]);
  return a;
}

Array flag_array(const SnapPattern& snap, DType dtype) {
  Array a = zeros({snap.num_position(), snap.num_neighbour()}, DType::f64);
  auto* p = a.mutable_data<double>();
  for (const std::vector<bool>& row : snap.valid)
    for (bool v : row) *p++ = v ? 1 : 0;
  return a.astype(dtype);
}

Shape with_axes(Shape s, std::initializer_list<std::int64_t> more) {
  s.insert(s.end(), more);
  return s;
}

std::vector<Value> gather(const StepValues& values, const HiddenGroup& g) {
  std::vector<Value> in;
  for (ValueId v : g.transition_constants) in.push_back(values.at(v));
  for (ValueId v : g.hidden_invars()) in.push_back(values.at(v));
  return in;
}

// (*V, K*S, K*S): blocks of the Jacobian between the neighbours of each position.
Value widened_jacobian(const HiddenGroup& g, const std::vector<Value>& in) {
  const SnapPattern& snap = *g.snap;
  const std::int64_t p = snap.num_position(), k = snap.num_neighbour(), s = g.num_state();
  std::vector<HiddenGroup::PositionPair> pairs;
  for (const auto& row : snap.neighbours)
    for (std::int64_t to : row)
      for (std::int64_t from : row) pairs.push_back({to, from});
  const Value picked =
      reshape(inline_graph(g.block_jacobian_program(pairs), in)[0], {p, k, k, s, s});
  const Array v = flag_array(snap, picked.dtype());
  const Value valid =
      reshape(Value(v), {p, k, 1, 1, 1}) * reshape(Value(v), {p, 1, k, 1, 1});
  const Value wide = transpose(picked * valid, {0, 1, 3, 2, 4});
  return reshape(wide, with_axes(g.varshape(), {k * s, k * s}));
}

}  // namespace

RuleContext::RuleContext(const ETraceGraph& graph, const Algorithm& algorithm,
                         const LearningOptions& options)
    : graph_(graph), algorithm_(algorithm), options_(options) {
  for (const HiddenGroup& g : groups()) patterns_.push_back(pattern_of(g));
  for (std::size_t i = 0; i < graph.hidden_param_op_relations.size(); ++i) {
    const HiddenParamOpRelation& r = graph.hidden_param_op_relations[i];
    const ScanDescentInfo* loop = r.control_flow_context.get();
    const bool dense = r.kind == RelationKind::dense;
    if (dense && loop) continue;
    const ModuleInfo& info = loop ? loop->body : graph.module_info;
    auto& list = dense ? dense_ : relations_;
    for (std::size_t k = 0; k < r.group_indices.size(); ++k)
      list.emplace_back(info, graph.hidden_groups, r, i, k);
  }
  std::map<const ScanDescentInfo*, std::vector<ValueId>> inside;
  for (const RelationWriter& r : dense_)
    if (const ScanDescentInfo* loop = r.group().descent.get())
      for (const std::vector<ValueId>& more :
           {r.group().transition_constants, r.group().hidden_invars()})
        inside[loop].insert(inside[loop].end(), more.begin(), more.end());
  for (const RelationWriter& r : relations_)
    if (const ScanDescentInfo* loop = r.relation().control_flow_context.get()) {
      std::vector<ValueId>& ids = inside[loop];
      for (const std::vector<ValueId>& more :
           {r.reads(), r.group().transition_constants, r.group().hidden_invars()})
        ids.insert(ids.end(), more.begin(), more.end());
    }
  for (auto& [loop, ids] : inside)
    loops_.emplace(loop, LoopValues(graph.module_info, *loop, std::move(ids)));
}

std::int64_t RuleContext::width(std::int64_t group) const {
  return groups()[static_cast<std::size_t>(group)].trace_state_width();
}

TemporalRecursion RuleContext::recursion() const {
  return algorithm_.engine == Engine::hybrid ? TemporalRecursion::jacobian
                                             : config().temporal_recursion().f;
}

std::vector<bool> RuleContext::pattern_of(const HiddenGroup& g) const {
  if (g.descent || g.num_state() == 1 || g.trace_state_width() != g.num_state() ||
      recursion() != TemporalRecursion::jacobian)
    return {};
  return g.jacobian_pattern();
}

std::vector<ValueId> RuleContext::reads() const {
  std::set<ValueId> ids;
  for (const RelationWriter& r : relations_) {
    if (r.relation().control_flow_context) continue;
    const std::vector<ValueId> more = r.reads();
    ids.insert(more.begin(), more.end());
  }
  for (const auto& [loop, values] : loops_) {
    const std::vector<ValueId> more = values.reads();
    ids.insert(more.begin(), more.end());
  }
  for (const HiddenGroup& g : groups()) {
    if (g.descent) continue;
    ids.insert(g.transition_constants.begin(), g.transition_constants.end());
    const std::vector<ValueId> in = g.hidden_invars();
    ids.insert(in.begin(), in.end());
  }
  return {ids.begin(), ids.end()};
}

StepTerms::StepTerms(const RuleContext& context, StepValues values)
    : context_(context), values_(std::move(values)) {}

Value StepTerms::steps_in_traces() const {
  return at_entry ? trace_steps : trace_steps + 1;
}

StepTerms StepTerms::within(StepValues body_values) const {
  StepTerms t(context_, std::move(body_values));
  t.calls = calls;
  t.trace_steps = trace_steps;
  t.inputs = inputs;
  t.at_entry = at_entry;
  t.moves_filters = moves_filters;
  return t;
}

StepTerms StepTerms::at_old_states() const {
  StepTerms t = within(values_);
  t.at_entry = true;
  t.moves_filters = false;
  return t;
}

const std::optional<Value>& StepTerms::D(std::int64_t group) {
  auto it = d_.find(group);
  if (it == d_.end())
    it = d_.emplace(group, make_D(context_.groups()[static_cast<std::size_t>(group)]))
             .first;
  return it->second;
}

Value StepTerms::loop_D(std::int64_t group) const {
  const HiddenGroup& g = context_.groups()[static_cast<std::size_t>(group)];
  const LoopValues& loop = context_.loop(g.descent.get());
  const std::int64_t m = g.num_state();
  Array eye = zeros({m, m}, DType::f64);
  for (std::int64_t i = 0; i < m; ++i) eye.mutable_data<double>()[i * (m + 1)] = 1;
  const DType dtype = g.descent->body.program().type(g.members[0].in).dtype;
  const Value one(
      eye.astype(dtype).broadcast_to(with_axes(g.varshape(), {m, m})).contiguous());
  return scan(
             [&](const Values& in) {
               const std::span<const Value> all(in);
               StepTerms sub = within(loop.at(values_, all.subspan(1)));
               const std::optional<Value>& d = sub.D(group);
               if (!d) return Values{zeros_like(in[0])};
               Ints lead = iota_ints(in[0].rank() - 2);
               const DotDims dims{.lhs_contract = {in[0].rank() - 1},
                                  .rhs_contract = {in[0].rank() - 2},
                                  .lhs_batch = lead,
                                  .rhs_batch = lead};
               return Values{dot_general(*d, in[0], dims)};
             },
             {one}, loop.stacked(values_))
      .carry[0];
}

std::optional<Value> StepTerms::make_D(const HiddenGroup& g) const {
  const ETraceConfig& config = context_.config();
  const std::int64_t m = g.trace_state_width();
  const bool io = config.trace_factorization() == TraceFactorization::io_factorized;
  const TemporalRecursion recursion = context_.recursion();
  if (recursion == TemporalRecursion::none) return std::nullopt;
  if (recursion == TemporalRecursion::scalar_leak) {
    const double leak = io ? 1.0 : *config.decay().f;  // io: the leak is in the filter
    Array eye = zeros({m, m}, DType::f64);
    for (std::int64_t i = 0; i < m; ++i) eye.mutable_data<double>()[i * (m + 1)] = leak;
    const ModuleInfo& info = g.descent ? g.descent->body : context_.graph().module_info;
    const DType dtype = info.program().type(g.members[0].in).dtype;
    return Value(
        eye.astype(dtype).broadcast_to(with_axes(g.varshape(), {m, m})).contiguous());
  }
  if (!g.has_recurrence) return std::nullopt;
  const std::vector<Value> in = gather(values_, g);
  if (g.is_diagonal_recurrence) return inline_graph(g.diagonal_jacobian_program(), in)[0];
  if (!g.snap || g.snap->is_degenerate())
    return inline_graph(g.coupled_jacobian_program(), in)[0];
  return widened_jacobian(g, in);
}

const Value& StepTerms::df(std::size_t relation) {
  auto it = df_.find(relation);
  if (it != df_.end()) return it->second;
  const RelationWriter& r = context_.relations()[relation];
  Value df = r.df(values_);
  const std::int64_t extra = context_.width(r.group().index) - df.dim(-1);
  if (extra > 0) {
    Shape zero = df.shape();
    zero.back() = extra;
    df = concat({df, Value(zeros(zero, df.dtype()))}, -1);
  }
  return df_.emplace(relation, df).first->second;
}

Value StepTerms::times_jacobian(std::int64_t group, const Value& v) {
  const HiddenGroup& g = context_.groups()[static_cast<std::size_t>(group)];
  if (!g.has_recurrence) return zeros_like(v);
  const std::vector<Value> in = gather(values_, g);
  std::vector<Tangent> tangents(in.size());
  const std::vector<Value> parts = g.split_hidden(v);
  for (std::size_t i = 0; i < parts.size(); ++i)
    tangents[g.transition_constants.size() + i] = parts[i];
  const JvpResult r = jvp_values(g.transition_program, in, tangents);
  std::vector<Value> out;
  for (std::size_t i = 0; i < r.outs.size(); ++i)
    out.push_back(materialize(r.tangents[i], r.outs[i].type()));
  return g.concat_hidden(out);
}

Value widened_signal(const HiddenGroup& g, const Value& signal) {
  if (!g.snap || g.snap->is_degenerate()) return signal;
  const SnapPattern& snap = *g.snap;
  const std::int64_t p = snap.num_position(), k = snap.num_neighbour(), s = g.num_state();
  std::vector<std::int64_t> index;
  for (const auto& row : snap.neighbours)
    index.insert(index.end(), row.begin(), row.end());
  const Value picked =
      reshape(take(reshape(signal, {p, s}), index_array(index), 0), {p, k, s});
  const Value valid = reshape(Value(flag_array(snap, signal.dtype())), {p, k, 1});
  return reshape(picked * valid, with_axes(g.varshape(), {k * s}));
}

}  // namespace braintrace
