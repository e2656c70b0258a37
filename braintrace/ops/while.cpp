// SPDX-License-Identifier: Apache-2.0
// A loop that runs while a condition on its carry values is true. Forward mode only: its
// length is not known, so there is nowhere to keep what reverse mode would need.
#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/region.h"

namespace braintrace {
namespace {

// inputs cond consts, body consts, carry; cond: cond consts, carry -> boolean;
// body: body consts, carry -> carry; outputs carry
struct Layout {
  const Graph &cond, &body;
  std::size_t cond_consts, body_consts, carry;
  std::size_t first_carry() const { return cond_consts + body_consts; }
};

Layout layout(const Attrs& attrs) {
  const Graph& body = *attrs.graph("body");
  return {.cond = *attrs.graph("cond"),
          .body = body,
          .cond_consts = static_cast<std::size_t>(attrs.integer("num_cond_consts")),
          .body_consts = static_cast<std::size_t>(attrs.integer("num_body_consts")),
          .carry = body.outputs().size()};
}

struct WhileNode {
  GraphPtr cond, body;
  Values cond_consts, body_consts, carry;
};

Values emit_while(WhileNode n, SourceLoc loc) {
  Attrs attrs = {{"body", n.body},
                 {"cond", n.cond},
                 {"num_body_consts", static_cast<std::int64_t>(n.body_consts.size())},
                 {"num_cond_consts", static_cast<std::int64_t>(n.cond_consts.size())}};
  Values in = std::move(n.cond_consts);
  append(in, n.body_consts);
  append(in, n.carry);
  return emit(while_op, std::move(in), std::move(attrs), loc);
}

std::size_t checked_count_while(const Attrs& attrs, std::string_view name,
                                std::size_t limit) {
  const std::int64_t n = attrs.integer(name);
  BT_REQUIRE(n >= 0 && static_cast<std::uint64_t>(n) <= limit,
             fmt::format("while: {} must be in [0, {}], got {}", name, limit, n));
  return static_cast<std::size_t>(n);
}

std::vector<Type> infer_while(std::span<const Type> in, const Attrs& attrs) {
  const std::size_t cond_consts =
      checked_count_while(attrs, "num_cond_consts", in.size());
  const std::size_t body_consts =
      checked_count_while(attrs, "num_body_consts", in.size() - cond_consts);
  const Graph &cond = *attrs.graph("cond"), &body = *attrs.graph("body");
  const auto carry = in.subspan(cond_consts + body_consts);
  std::vector<Type> want(in.begin(),
                         in.begin() + static_cast<std::ptrdiff_t>(cond_consts));
  append(want, carry);
  require_types("while", "condition input", want, cond.input_types());
  const Type predicate{DType::boolean, {}};
  require_types("while", "condition output", std::span(&predicate, 1),
                cond.output_types());
  require_types("while", "body input", in.subspan(cond_consts), body.input_types());
  require_types("while", "body output", carry, body.output_types());
  return {carry.begin(), carry.end()};
}

void eval_while(const Kernel& k) {
  const Layout p = layout(k.attrs);
  Reader<Array> in{k.in};
  const auto cond_consts = in.take(p.cond_consts);
  const auto body_consts = in.take(p.body_consts);
  const auto init = in.take(p.carry);
  std::vector<Array> carry(init.begin(), init.end());
  auto with = [&](std::span<const Array> consts) {
    std::vector<Array> all(consts.begin(), consts.end());
    append(all, carry);
    return all;
  };
  while (eval_graph(p.cond, with(cond_consts))[0].item() != 0)
    carry = eval_graph(p.body, with(body_consts));
  for (std::size_t i = 0; i < p.carry; ++i) k.out[i] = carry[i].contiguous();
}

Lowering lower_while(const Signature& s) {
  const Layout p = layout(s.attrs);
  return lowering::While{s.attrs.graph("cond"), s.attrs.graph("body"), p.cond_consts,
                         p.body_consts};
}

// One step with tangents: consts, dconsts, carry, dcarry -> carry, dcarry. Carry values
// found to move are added to `active` (by carry).
GraphPtr moving_body(const Layout& p, const std::vector<bool>& dconsts,
                     std::vector<bool>& active) {
  std::vector<Type> body_in = p.body.input_types();
  std::vector<Type> types(body_in.begin(),
                          body_in.begin() + static_cast<std::ptrdiff_t>(p.body_consts));
  for (std::size_t i = 0; i < p.body_consts; ++i)
    if (dconsts[i]) types.push_back(body_in[i]);
  append(types, std::span<const Type>(body_in).subspan(p.body_consts));
  for (std::size_t i = 0; i < p.carry; ++i)
    if (active[i]) types.push_back(body_in[p.body_consts + i]);
  std::vector<bool> moves;
  GraphPtr body = write_graph(types, [&](const Values& in) {
    Reader<Value> reader{in};
    const auto consts = reader.take(p.body_consts);
    Values inputs(consts.begin(), consts.end());
    std::vector<Tangent> tangents;
    for (const bool d : dconsts)
      tangents.push_back(d ? Tangent(reader.next()) : std::nullopt);
    append(inputs, reader.take(p.carry));
    for (const bool a : active)
      tangents.push_back(a ? Tangent(reader.next()) : std::nullopt);
    JvpResult r = jvp_values(p.body, inputs, tangents);
    moves = present(r.tangents);
    Values results = r.outs;
    for (std::size_t i = 0; i < p.carry; ++i)
      if (active[i]) results.push_back(materialize(r.tangents[i], r.outs[i].type()));
    return results;
  });
  for (std::size_t i = 0; i < p.carry; ++i) active[i] = active[i] || moves[i];
  return body;
}

// The condition on a longer carry: it reads only the first values.
GraphPtr widened_condition(const Layout& p, std::span<const Type> more) {
  std::vector<Type> types = p.cond.input_types();
  const std::size_t read = types.size();
  append(types, more);
  return write_graph(types, [&](const Values& in) {
    return inline_graph(p.cond, std::span<const Value>(in).first(read));
  });
}

// The loop itself, and a second one that carries tangents along.
RegionJvp jvp_region_while(const Site& s, std::span<const Tangent> tangents) {
  const Layout p = layout(s.attrs);
  const std::vector<bool> dconsts =
      present(tangents.subspan(p.cond_consts, p.body_consts));
  std::vector<bool> active = present(tangents.subspan(p.first_carry()));
  GraphPtr body;
  for (std::vector<bool> before; before != active;) {
    before = active;
    body = moving_body(p, dconsts, active);
  }
  RegionJvp result;
  result.outs = emit(s.op, {s.in.begin(), s.in.end()}, s.attrs, s.loc);
  result.tangents.resize(p.carry);

  WhileNode node{
      .cond = {}, .body = body, .cond_consts = {}, .body_consts = {}, .carry = {}};
  Reader<Value> in{s.in};
  append(node.cond_consts, in.take(p.cond_consts));
  append(node.body_consts, in.take(p.body_consts));
  append(node.body_consts,
         present_values(tangents.subspan(p.cond_consts, p.body_consts)));
  append(node.carry, in.take(p.carry));
  std::vector<Type> more;
  for (std::size_t i = 0; i < p.carry; ++i) {
    if (!active[i]) continue;
    const Value& h = s.in[p.first_carry() + i];
    more.push_back(h.type());
    node.carry.push_back(materialize(tangents[p.first_carry() + i], h.type()));
  }
  if (more.empty()) return result;
  node.cond = widened_condition(p, more);
  const Values out = emit_while(std::move(node), s.loc);
  std::size_t next = p.carry;
  for (std::size_t i = 0; i < p.carry; ++i)
    if (active[i]) result.tangents[i] = out[next++];
  return result;
}

std::vector<Tangent> transpose_while(const Site&, std::span<const Tangent>) {
  throw UserError(
      ErrorKind::not_supported,
      "while: reverse mode needs a loop of known length; use scan, or forward "
      "mode (jvp)");
}

struct LaneAxes {
  std::vector<BatchAxis> consts;  // of the cond or of the body
  std::vector<bool> carry;        // in front
};

std::vector<Type> lane_types(const Graph& g, const LaneAxes& axes, std::int64_t size) {
  std::vector<Type> types = g.input_types();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool is_const = i < axes.consts.size();
    const BatchAxis at = is_const                             ? axes.consts[i]
                         : axes.carry[i - axes.consts.size()] ? BatchAxis(0)
                                                              : std::nullopt;
    if (at) types[i].shape.insert(types[i].shape.begin() + *at, size);
  }
  return types;
}

BatchResult on_lanes(const Graph& g, std::span<const Value> in, const LaneAxes& axes) {
  std::vector<BatchAxis> all = axes.consts;
  for (const bool c : axes.carry) all.push_back(c ? BatchAxis(0) : std::nullopt);
  return batch_graph(g, in, all);
}

// Finds the carry values that differ by lane, and whether the condition does.
bool condition_differs(const Layout& p, const LaneAxes& cond, LaneAxes& body,
                       std::int64_t size) {
  bool differs = false;
  for (bool grew = true; grew;) {
    grew = false;
    const LaneAxes now{cond.consts, body.carry};
    write_graph(lane_types(p.cond, now, size), [&](const Values& in) {
      differs = on_lanes(p.cond, in, now).axes[0].has_value();
      return Values{};
    });
    write_graph(lane_types(p.body, body, size), [&](const Values& in) {
      const BatchResult r = on_lanes(p.body, in, body);
      for (std::size_t i = 0; i < p.carry; ++i) {
        if (body.carry[i] || !(differs || r.axes[i])) continue;
        body.carry[i] = grew = true;
      }
      return Values{};
    });
  }
  return differs;
}

// cond consts | carry -> any lane still runs
GraphPtr lane_condition(const Layout& p, const LaneAxes& axes, std::int64_t size) {
  return write_graph(lane_types(p.cond, axes, size), [&](const Values& in) {
    const BatchResult r = on_lanes(p.cond, in, axes);
    if (!r.axes[0]) return r.values;
    return Values{sum(astype(r.values[0], DType::i32)) > 0};
  });
}

// One step on all lanes; with a condition per lane, finished lanes keep their values.
// [cond consts] body consts | carry -> carry
GraphPtr lane_body(const Layout& p, const LaneAxes& cond, const LaneAxes& body,
                   bool differs, std::int64_t size) {
  std::vector<Type> types = lane_types(p.body, body, size);
  const std::vector<Type> cond_types = lane_types(p.cond, cond, size);
  if (differs)
    types.insert(types.begin(), cond_types.begin(),
                 cond_types.begin() + static_cast<std::ptrdiff_t>(p.cond_consts));
  return write_graph(types, [&](const Values& in) {
    Reader<Value> reader{in};
    const auto cond_consts = reader.take(differs ? p.cond_consts : 0);
    Values cond_in(cond_consts.begin(), cond_consts.end());
    const auto consts = reader.take(p.body_consts);
    Values body_in(consts.begin(), consts.end());
    const auto carry = reader.take(p.carry);
    append(cond_in, carry);
    append(body_in, carry);
    BatchResult r = on_lanes(p.body, body_in, body);
    for (std::size_t i = 0; i < p.carry; ++i)
      if (body.carry[i]) r.values[i] = batch_in_front(r.values[i], r.axes[i], size);
    if (!differs) return r.values;
    const BatchResult runs = on_lanes(p.cond, cond_in, cond);
    for (std::size_t i = 0; i < p.carry; ++i)
      r.values[i] = select(lanes_of_rank(runs.values[0], r.values[i].rank()), r.values[i],
                           carry[i]);
    return r.values;
  });
}

BatchResult batch_while(const Site& s, std::span<const BatchAxis> axes) {
  const Layout p = layout(s.attrs);
  const std::int64_t size = batch_size(s.in, axes);
  Reader<BatchAxis> axis{axes};
  LaneAxes cond, body;
  append(cond.consts, axis.take(p.cond_consts));
  append(body.consts, axis.take(p.body_consts));
  for (const BatchAxis& a : axis.take(p.carry)) body.carry.push_back(a.has_value());
  const bool differs = condition_differs(p, cond, body, size);
  cond.carry = body.carry;

  WhileNode node;
  node.cond = lane_condition(p, cond, size);
  node.body = lane_body(p, cond, body, differs, size);
  Reader<Value> in{s.in};
  append(node.cond_consts, in.take(p.cond_consts));
  if (differs) node.body_consts = node.cond_consts;
  append(node.body_consts, in.take(p.body_consts));
  BatchResult result;
  for (std::size_t i = 0; i < p.carry; ++i) {
    const std::size_t k = p.first_carry() + i;
    node.carry.push_back(body.carry[i] ? batch_in_front(s.in[k], axes[k], size)
                                       : s.in[k]);
    result.axes.push_back(body.carry[i] ? BatchAxis(0) : std::nullopt);
  }
  result.values = emit_while(std::move(node), s.loc);
  return result;
}

// Captured values come last in a trace and first in the node.
GraphPtr captured_first(const Traced& t) {
  const auto ids = t.graph.inputs();
  const std::size_t declared = ids.size() - t.captured.size();
  std::vector<ValueId> order(ids.begin() + static_cast<std::ptrdiff_t>(declared),
                             ids.end());
  append(order, ids.first(declared));
  return std::make_shared<const Graph>(subgraph(t.graph, order, t.graph.outputs()));
}

}  // namespace

const OpDef while_op = {
    .name = "while",
    .traits = Trait::region,
    .arity = kVariadic,
    .attrs = {{"body", AttrKind::graph},
              {"cond", AttrKind::graph},
              {"num_body_consts", AttrKind::integer},
              {"num_cond_consts", AttrKind::integer}},
    .infer = infer_while,
    .eval = eval_while,
    .lower = lower_while,
    .code = "while_loop({cond}, {body}, $*)",
    .jvp_region = jvp_region_while,
    .transpose = transpose_while,
    .batch = batch_while,
};

Values while_loop(const ValuesFn& condition, const ValuesFn& body, const Values& init,
                  Loc loc) {
  const std::vector<Type> types = types_of(init);
  const Traced c = trace(condition, types), b = trace(body, types);
  return emit_while({captured_first(c), captured_first(b), c.captured, b.captured, init},
                    loc);
}

}  // namespace braintrace
