// SPDX-License-Identifier: Apache-2.0
// The Jacobians of a group's transition, as programs (docs/etrace.md, D).
#include "braintrace/etrace/hidden_group.h"
#include "braintrace/etrace/position_graph.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/transforms/jacobian.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {
namespace {

// One at state `a` for every position, zero elsewhere, per member; absent in members
// without that state.
std::vector<Tangent> one_state(const HiddenGroup& g, std::int64_t a, DType dtype) {
  const std::int64_t states = g.num_state();
  Array one = zeros({states}, DType::f64);
  one.mutable_data<double>()[a] = 1;
  Shape shape = g.varshape();
  shape.push_back(states);
  const std::vector<Value> parts =
      g.split_hidden(Value(one.astype(dtype).broadcast_to(shape).contiguous()));
  std::vector<Tangent> out(parts.size());
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); first += g.members[i++].num_state)
    if (first <= a && a < first + g.members[i].num_state) out[i] = parts[i];
  return out;
}

struct Inputs {
  std::shared_ptr<Builder> builder = Builder::create();
  std::vector<Value> all;
  std::size_t num_constants = 0;
};
Inputs inputs_of(const HiddenGroup& g) {
  Inputs in;
  for (const Type& t : g.transition_program.input_types())
    in.all.push_back(in.builder->input(t));
  in.num_constants = g.transition_constants.size();
  return in;
}

Value by_reverse(const HiddenGroup& g, const Inputs& in, std::int64_t a, DType dtype) {
  std::vector<bool> active(in.all.size(), false);
  for (std::size_t i = in.num_constants; i < active.size(); ++i) active[i] = true;
  const VjpResult r =
      vjp_values(g.transition_program, active, in.all, one_state(g, a, dtype));
  std::vector<Value> rows;
  for (std::size_t i = in.num_constants; i < in.all.size(); ++i)
    rows.push_back(materialize(r.cotangents[i], in.all[i].type()));
  return g.concat_hidden(rows);
}

Value by_forward(const HiddenGroup& g, const Inputs& in, std::int64_t b, DType dtype) {
  std::vector<Tangent> tangents(in.all.size());
  const std::vector<Tangent> one = one_state(g, b, dtype);
  for (std::size_t i = 0; i < one.size(); ++i) tangents[in.num_constants + i] = one[i];
  const JvpResult r = jvp_values(g.transition_program, in.all, tangents);
  std::vector<Value> columns;
  for (std::size_t i = 0; i < r.outs.size(); ++i)
    columns.push_back(materialize(r.tangents[i], r.outs[i].type()));
  return g.concat_hidden(columns);
}

// (constants, one array of all states) -> one array of all states
Graph stacked_transition(const HiddenGroup& g) {
  const auto builder = Builder::create();
  std::vector<Value> in;
  const std::vector<Type> types = g.transition_program.input_types();
  const std::size_t constants = g.transition_constants.size();
  for (std::size_t i = 0; i < constants; ++i) in.push_back(builder->input(types[i]));
  Shape shape = g.varshape();
  shape.push_back(g.num_state());
  const Value all = builder->input({types[constants].dtype, shape});
  for (const Value& v : g.split_hidden(all)) in.push_back(v);
  const std::vector<Value> out = inline_graph(g.transition_program, in);
  return builder->finish(std::vector{g.concat_hidden(out)});
}

// One product per colour and state: (colours, S in, P, S out).
Value probed(const HiddenGroup& g, const Inputs& in, const ColumnColours& colours) {
  const std::int64_t p = num_elements(g.varshape()), s = g.num_state();
  Array probes = zeros({colours.count, s, p, s}, DType::f64);
  auto* entry = probes.mutable_data<double>();
  for (std::int64_t q = 0; q < p; ++q)
    for (std::int64_t b = 0; b < s; ++b)
      entry[((colours.of[static_cast<std::size_t>(q)] * s + b) * p + q) * s + b] = 1;
  Shape shape = g.varshape();
  shape.insert(shape.begin(), colours.count * s);
  shape.push_back(s);
  const DType dtype = in.all.back().dtype();
  const Values columns =
      on_lanes({probes.astype(dtype).reshaped(shape)}, [&](const Values& probe) {
        std::vector<Tangent> tangents(in.all.size());
        const std::vector<Value> parts = g.split_hidden(probe[0]);
        for (std::size_t i = 0; i < parts.size(); ++i)
          tangents[in.num_constants + i] = parts[i];
        const JvpResult r = jvp_values(g.transition_program, in.all, tangents);
        std::vector<Value> moved;
        for (std::size_t i = 0; i < r.outs.size(); ++i)
          moved.push_back(materialize(r.tangents[i], r.outs[i].type()));
        return Values{g.concat_hidden(moved)};
      });
  return reshape(columns[0], {colours.count, s, p, s});
}

Array run_on(const Graph& program, const std::vector<Array>& hidden,
             const std::vector<Array>& constants) {
  std::vector<Array> in = constants;
  in.insert(in.end(), hidden.begin(), hidden.end());
  return eval_graph(program, in)[0];
}

}  // namespace

std::vector<bool> HiddenGroup::jacobian_pattern() const {
  const std::size_t s = members.size();
  const auto states = static_cast<std::size_t>(num_state());
  std::vector<bool> pattern(states * states, true);
  if (s != states || !is_diagonal_recurrence || !has_recurrence ||
      has_while(transition_program))
    return pattern;
  const Inputs in = inputs_of(*this);
  std::vector<bool> active(in.all.size(), false);
  for (std::size_t i = in.num_constants; i < active.size(); ++i) active[i] = true;
  for (std::size_t a = 0; a < s; ++a) {
    std::vector<Tangent> ct(s);
    ct[a] = ones_like(in.all[in.num_constants + a]);
    const VjpResult r = vjp_values(transition_program, active, in.all, ct);
    for (std::size_t b = 0; b < s; ++b)
      pattern[a * s + b] = r.cotangents[in.num_constants + b].has_value();
  }
  return pattern;
}

Graph HiddenGroup::diagonal_jacobian_program() const {
  const Inputs in = inputs_of(*this);
  const DType dtype = in.all.back().dtype();
  const bool forward = has_while(transition_program);
  std::vector<Value> parts;
  for (std::int64_t s = 0; s < num_state(); ++s)
    parts.push_back(forward ? by_forward(*this, in, s, dtype)
                            : by_reverse(*this, in, s, dtype));
  // Reverse gives rows D[a, :], forward gives columns D[:, b].
  return in.builder->finish(std::vector{stack(parts, forward ? -1 : -2)});
}

Graph HiddenGroup::full_jacobian_program() const {
  const Inputs in = inputs_of(*this);
  const Graph stacked = stacked_transition(*this);
  const JacobianMode mode =
      has_while(transition_program) ? JacobianMode::forward : JacobianMode::smaller;
  const Graph full =
      jacobian(stacked, {.input = stacked.inputs().size() - 1, .mode = mode});
  const std::vector<Value> members_in(
      in.all.begin() + static_cast<std::ptrdiff_t>(in.num_constants), in.all.end());
  std::vector<Value> args(in.all.begin(),
                          in.all.begin() + static_cast<std::ptrdiff_t>(in.num_constants));
  args.push_back(concat_hidden(members_in));
  return in.builder->finish(inline_graph(full, args));
}

Graph HiddenGroup::block_jacobian_program(const std::vector<PositionPair>& pairs) const {
  const Inputs in = inputs_of(*this);
  const std::int64_t p = num_elements(varshape()), s = num_state();
  const AxisAdjacency reads = one_step_adjacency(*this, SnapFallback::per_sample);
  const ColumnColours colours = column_colours(reads, varshape());
  const Value columns = probed(*this, in, colours);  // (colours, S, P, S)
  const Value blocks = reshape(transpose(columns, {2, 0, 3, 1}), {-1, s, s});
  Array index = zeros({static_cast<std::int64_t>(pairs.size())}, DType::i32);
  Array used = zeros({static_cast<std::int64_t>(pairs.size()), 1, 1}, DType::f64);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [to, from] = pairs[i];
    BT_INVARIANT(to < p && from < p);
    index.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(
        to * colours.count + colours.of[static_cast<std::size_t>(from)]);
    used.mutable_data<double>()[i] = may_read(reads, varshape(), to, from) ? 1 : 0;
  }
  const Value picked = take(blocks, index, 0) * Value(used.astype(columns.dtype()));
  return in.builder->finish(std::vector{picked});
}

Graph HiddenGroup::coupled_jacobian_program() const {
  const Inputs in = inputs_of(*this);
  std::vector<PositionPair> own;
  for (std::int64_t p = 0; p < num_elements(varshape()); ++p) own.push_back({p, p});
  Shape shape = varshape();
  shape.insert(shape.end(), {num_state(), num_state()});
  const Value blocks = inline_graph(block_jacobian_program(own), in.all)[0];
  return in.builder->finish(std::vector{reshape(blocks, shape)});
}

Array HiddenGroup::diagonal_jacobian(const std::vector<Array>& hidden_vals,
                                     const std::vector<Array>& const_vals) const {
  return run_on(
      is_diagonal_recurrence ? diagonal_jacobian_program() : coupled_jacobian_program(),
      hidden_vals, const_vals);
}

Array HiddenGroup::full_jacobian(const std::vector<Array>& hidden_vals,
                                 const std::vector<Array>& const_vals) const {
  BT_REQUIRE_KIND(!descent, ErrorKind::not_implemented,
                  "full_jacobian: not available for a group inside a long scan");
  return run_on(full_jacobian_program(), hidden_vals, const_vals);
}

}  // namespace braintrace
