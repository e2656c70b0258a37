// SPDX-License-Identifier: Apache-2.0
// Runs one of two programs on the same operands.
#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/region.h"
#include "braintrace/ops/region_rewrite.h"

namespace braintrace {
namespace {

// inputs predicate, operands; branches: operands -> outputs
struct Branches {
  GraphPtr if_true, if_false;
};

Branches branches(const Attrs& attrs) {
  return {attrs.graph("true_branch"), attrs.graph("false_branch")};
}

Values emit_cond(Branches b, Values inputs, SourceLoc loc) {
  return emit(cond_op, std::move(inputs),
              {{"false_branch", b.if_false}, {"true_branch", b.if_true}}, loc);
}

std::vector<Type> infer_cond(std::span<const Type> in, const Attrs& attrs) {
  const Type predicate{DType::boolean, {}};
  BT_REQUIRE(!in.empty(), "cond: needs a predicate");
  require_types("cond", "predicate", std::span(&predicate, 1), in.first(1));
  const Branches b = branches(attrs);
  require_types("cond", "true branch input", in.subspan(1), b.if_true->input_types());
  require_types("cond", "false branch input", in.subspan(1), b.if_false->input_types());
  require_types("cond", "false branch output", b.if_true->output_types(),
                b.if_false->output_types());
  return b.if_true->output_types();
}

void eval_cond(const Kernel& k) {
  const Branches b = branches(k.attrs);
  const Graph& chosen = k.in[0].item() != 0 ? *b.if_true : *b.if_false;
  const std::vector<Array> out = eval_graph(chosen, k.in.subspan(1));
  for (std::size_t i = 0; i < out.size(); ++i) k.out[i] = out[i].contiguous();
}

Lowering lower_cond(const Signature& s) {
  const Branches b = branches(s.attrs);
  return lowering::Cond{b.if_true, b.if_false};
}

// The residuals of one linearized branch: operands pass as they are, the others become
// outputs of the primal node.
struct Residuals {
  std::vector<std::ptrdiff_t> operand;  // by residual: operand index, else -1
  std::vector<Type> computed;           // types of the others
};

Residuals residuals_of_cond(const Linearized& lin) {
  Residuals r;
  for (ValueId v : lin.primal.outputs().last(lin.num_residuals)) {
    const bool is_operand = v.index < lin.primal.inputs().size();
    r.operand.push_back(is_operand ? static_cast<std::ptrdiff_t>(v.index) : -1);
    if (!is_operand) r.computed.push_back(lin.primal.type(v));
  }
  return r;
}

Values zeros_of_all(std::span<const Type> types) {
  Values values;
  for (const Type& t : types) values.push_back(zeros_of(t));
  return values;
}

// operands -> outputs, own computed residuals with zeros around them
GraphPtr primal_branch(const Linearized& lin, const Residuals& r,
                       std::span<const Type> before, std::span<const Type> after) {
  return write_graph(lin.primal.input_types(), [&](const Values& in) {
    const Values out = inline_graph(lin.primal, in);
    Reader<Value> reader{out};
    Values results;
    append(results, reader.take(lin.active_out.size()));
    append(results, zeros_of_all(before));
    for (const std::ptrdiff_t operand : r.operand) {
      const Value& v = reader.next();
      if (operand < 0) results.push_back(v);
    }
    append(results, zeros_of_all(after));
    return results;
  });
}

// operands, all computed residuals, tangents -> tangents of the outputs in `moves`.
// `skip`: computed residuals of the other branch that come first.
GraphPtr linear_branch(const Linearized& lin, const Residuals& r,
                       std::span<const Type> types, std::size_t skip,
                       const std::vector<bool>& moves) {
  const std::size_t operands = lin.primal.inputs().size();
  return write_graph(types, [&](const Values& in) {
    Reader<Value> computed{std::span<const Value>(in).subspan(operands + skip)};
    Values linear_in;
    for (const std::ptrdiff_t operand : r.operand)
      linear_in.push_back(operand < 0 ? computed.next()
                                      : in[static_cast<std::size_t>(operand)]);
    const std::size_t tangents = lin.linear.inputs().size() - lin.num_residuals;
    append(linear_in, std::span<const Value>(in).last(tangents));
    const Values out = inline_graph(lin.linear, linear_in);
    Reader<Value> next{out};
    Values results;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      if (lin.active_out[i]) {
        results.push_back(next.next());
      } else if (moves[i]) {
        results.push_back(zeros_of(lin.primal.type(lin.primal.outputs()[i])));
      }
    }
    return results;
  });
}

RegionJvp jvp_region_cond(const Site& s, std::span<const Tangent> tangents) {
  const Branches b = branches(s.attrs);
  const std::vector<bool> active = present(tangents.subspan(1));
  const Linearized t = linearize(*b.if_true, active), f = linearize(*b.if_false, active);
  const Residuals rt = residuals_of_cond(t), rf = residuals_of_cond(f);
  const std::size_t n = t.active_out.size();
  std::vector<bool> moves(n);
  for (std::size_t i = 0; i < n; ++i) moves[i] = t.active_out[i] || f.active_out[i];

  RegionJvp result;
  result.outs = emit_cond(
      {primal_branch(t, rt, {}, rf.computed), primal_branch(f, rf, rt.computed, {})},
      {s.in.begin(), s.in.end()}, s.loc);
  Values in(s.in.begin(), s.in.end());
  append(in, std::span<const Value>(result.outs).subspan(n));
  append(in, present_values(tangents.subspan(1)));
  result.outs.resize(n);
  std::vector<Type> types = types_of(in);
  types.erase(types.begin());
  const Values moved = emit_cond({linear_branch(t, rt, types, 0, moves),
                                  linear_branch(f, rf, types, rt.computed.size(), moves)},
                                 std::move(in), s.loc);
  Reader<Value> next{moved};
  for (const bool m : moves)
    result.tangents.push_back(m ? Tangent(next.next()) : std::nullopt);
  return result;
}

// Transposes one branch. Inputs: operands that are not linear, then the cotangents that
// arrive.
std::vector<Tangent> pull_branch(const Graph& branch, const std::vector<bool>& linear,
                                 std::span<const Value> in,
                                 const std::vector<bool>& arrives) {
  Reader<Value> reader{in};
  Values inputs(linear.size());
  for (std::size_t i = 0; i < linear.size(); ++i)
    if (!linear[i]) inputs[i] = reader.next();
  std::vector<Tangent> ct;
  for (const bool a : arrives) ct.push_back(a ? Tangent(reader.next()) : std::nullopt);
  return transpose_values(branch, linear, inputs, ct);
}

std::vector<Tangent> transpose_cond(const Site& s, std::span<const Tangent> ct) {
  const Branches b = branches(s.attrs);
  std::vector<bool> linear;
  Values in = {s.in[0]};
  for (std::size_t i = 1; i < s.in.size(); ++i) {
    linear.push_back(s.is_linear(i));
    if (!s.is_linear(i)) in.push_back(s.in[i]);
  }
  append(in, present_values(ct));
  std::vector<Type> types = types_of(in);
  types.erase(types.begin());
  const std::vector<bool> arrives = present(ct);

  std::vector<bool> leaves(linear.size(), false);
  for (const GraphPtr& g : {b.if_true, b.if_false}) {
    write_graph(types, [&](const Values& v) {
      const std::vector<bool> found = present(pull_branch(*g, linear, v, arrives));
      for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = leaves[i] || found[i];
      return Values{};
    });
  }
  auto turned = [&](const Graph& g) {
    return write_graph(types, [&](const Values& v) {
      const std::vector<Tangent> out = pull_branch(g, linear, v, arrives);
      Values results;
      for (std::size_t i = 0; i < leaves.size(); ++i)
        if (leaves[i]) results.push_back(materialize(out[i], g.type(g.inputs()[i])));
      return results;
    });
  };
  const Values out =
      emit_cond({turned(*b.if_true), turned(*b.if_false)}, std::move(in), s.loc);
  Reader<Value> next{out};
  std::vector<Tangent> result(s.in.size());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i]) result[i + 1] = next.next();
  return result;
}

// The operands of one branch. Lanes that do not take it see ones (zeros for integers), so
// that they cannot give 0 * NaN in reverse mode or read by an index not meant for them.
Values lane_operands(const Site& s, std::span<const BatchAxis> axes, const Value& takes) {
  Values out;
  for (std::size_t i = 1; i < s.in.size(); ++i) {
    if (!axes[i]) {
      out.push_back(s.in[i]);
      continue;
    }
    const Value v = move_axis(s.in[i], *axes[i], 0);
    const Value other = full({}, is_float(v.dtype()) ? 1 : 0, v.dtype());
    out.push_back(select(lanes_of_rank(takes, v.rank()), v, other));
  }
  return out;
}

// A predicate per lane: both branches run, each lane keeps its own.
BatchResult batch_both_cond(const Site& s, std::span<const BatchAxis> axes) {
  const Branches b = branches(s.attrs);
  const std::int64_t size = batch_size(s.in, axes);
  std::vector<BatchAxis> front;
  for (const BatchAxis& a : axes.subspan(1))
    front.push_back(a ? BatchAxis(0) : std::nullopt);
  const Value taken = s.in[0];
  const BatchResult t = batch_graph(*b.if_true, lane_operands(s, axes, taken), front);
  const BatchResult f =
      batch_graph(*b.if_false, lane_operands(s, axes, logical_not(taken)), front);
  BatchResult result;
  for (std::size_t i = 0; i < t.values.size(); ++i) {
    const Value x = batch_in_front(t.values[i], t.axes[i], size);
    const Value y = batch_in_front(f.values[i], f.axes[i], size);
    result.values.push_back(select(lanes_of_rank(taken, x.rank()), x, y));
    result.axes.push_back(0);
  }
  return result;
}

BatchResult batch_cond(const Site& s, std::span<const BatchAxis> axes) {
  if (axes[0]) return batch_both_cond(s, axes);
  const Branches b = branches(s.attrs);
  const std::int64_t size = batch_size(s.in, axes);
  std::vector<Type> types = types_of(s.in);
  types.erase(types.begin());
  std::vector<bool> batched(b.if_true->outputs().size(), false);
  for (const GraphPtr& g : {b.if_true, b.if_false}) {
    write_graph(types, [&](const Values& in) {
      const BatchResult r = batch_graph(*g, in, axes.subspan(1));
      for (std::size_t i = 0; i < batched.size(); ++i)
        batched[i] = batched[i] || r.axes[i];
      return Values{};
    });
  }
  auto on_lanes = [&](const Graph& g) {
    return write_graph(types, [&](const Values& in) {
      BatchResult r = batch_graph(g, in, axes.subspan(1));
      for (std::size_t i = 0; i < batched.size(); ++i)
        if (batched[i]) r.values[i] = batch_in_front(r.values[i], r.axes[i], size);
      return r.values;
    });
  };
  BatchResult result{.values = emit_cond({on_lanes(*b.if_true), on_lanes(*b.if_false)},
                                         {s.in.begin(), s.in.end()}, s.loc),
                     .axes = {}};
  for (const bool y : batched) result.axes.push_back(y ? BatchAxis(0) : std::nullopt);
  return result;
}

// A branch on all operands of the node: declared ones and what both branches captured.
GraphPtr on_all_operands(const Traced& t, std::span<const Type> types,
                         std::size_t declared, std::size_t first_captured) {
  return write_graph(types, [&](const Values& in) {
    const std::span<const Value> all = in;
    Values own;
    append(own, all.first(declared));
    append(own, all.subspan(first_captured, t.captured.size()));
    return inline_graph(t.graph, own);
  });
}

}  // namespace

const OpDef cond_op = {
    .name = "cond",
    .traits = Trait::region,
    .arity = kVariadic,
    .attrs = {{"false_branch", AttrKind::graph}, {"true_branch", AttrKind::graph}},
    .infer = infer_cond,
    .eval = eval_cond,
    .lower = lower_cond,
    .code = "cond($0, {true_branch}, {false_branch}, $*)",
    .jvp_region = jvp_region_cond,
    .transpose = transpose_cond,
    .batch = batch_cond,
    .to_select = cond_to_select,
};

Values cond(Arg predicate, const ValuesFn& if_true, const ValuesFn& if_false,
            const Values& operands) {
  const std::vector<Type> declared = types_of(operands);
  const Traced t = trace(if_true, declared), f = trace(if_false, declared);
  Values in = {predicate.value};
  append(in, operands);
  append(in, t.captured);
  append(in, f.captured);
  std::vector<Type> types = types_of(in);
  types.erase(types.begin());
  const std::size_t n = operands.size();
  return emit_cond({on_all_operands(t, types, n, n),
                    on_all_operands(f, types, n, n + t.captured.size())},
                   std::move(in), predicate.loc);
}

}  // namespace braintrace
