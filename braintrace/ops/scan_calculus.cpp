// SPDX-License-Identifier: Apache-2.0
// Derivatives of scan. Forward: the loop itself, keeping what the derivative of the body
// needs, and a second loop over tangents that is linear. Reverse: that loop run
// backwards.
#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/scan_impl.h"

namespace braintrace {
namespace {

// Linearizes the body; a carry that moves at one step moves at all.
Linearized linearize_body(const ScanLayout& p, std::vector<bool> active) {
  while (true) {
    Linearized lin = linearize(p.body, active);
    bool grew = false;
    for (std::size_t i = 0; i < p.carry; ++i) {
      if (!lin.active_out[i] || active[p.consts + i]) continue;
      active[p.consts + i] = grew = true;
    }
    if (!grew) return lin;
  }
}

// Where the linear loop gets the residuals of the body from.
struct ResidualSources {
  std::vector<bool> varies;        // by residual: else the same at every step
  std::vector<ValueId> invariant;  // ids in the primal body
  std::vector<ValueId> stacked;    // must become ys of the primal loop
  std::vector<std::ptrdiff_t> xs;  // by varying residual: index among the xs, else -1
};

ResidualSources residual_sources(const ScanLayout& p, const Linearized& lin) {
  const Graph& g = lin.primal;
  const std::vector<bool> varies = depends_on(g, g.inputs().subspan(p.consts));
  const std::size_t first_x = p.consts + p.carry;
  ResidualSources r;
  for (ValueId v : g.outputs().last(lin.num_residuals)) {
    r.varies.push_back(varies[v.index]);
    if (!varies[v.index]) {
      r.invariant.push_back(v);
      continue;
    }
    const bool is_x = v.index >= first_x && v.index < g.inputs().size();
    r.xs.push_back(is_x ? static_cast<std::ptrdiff_t>(v.index - first_x) : -1);
    if (!is_x) r.stacked.push_back(v);
  }
  return r;
}

// invariant residuals, dconsts | dcarry | varying residuals, dxs -> dcarry | dys
GraphPtr linear_body(const ScanLayout& p, const Linearized& lin, const ResidualSources& r,
                     const ScanNode& node) {
  std::vector<Type> types = types_of(node.consts);
  append(types, types_of(node.carry));
  for (const Value& x : node.xs) types.push_back(step_type(x.type()));
  const std::size_t num_varying = r.xs.size();
  return write_graph(types, [&](const Values& in) {
    Reader<Value> reader{in};
    auto invariant = Reader<Value>(reader.take(r.invariant.size()));
    const auto dconsts = reader.take(node.consts.size() - r.invariant.size());
    const auto dcarry = reader.take(node.carry.size());
    auto varying = Reader<Value>(reader.take(num_varying));
    const auto dxs = reader.take(node.xs.size() - num_varying);
    Values linear_in;
    for (const bool v : r.varies)
      linear_in.push_back(v ? varying.next() : invariant.next());
    append(linear_in, dconsts);
    append(linear_in, dcarry);
    append(linear_in, dxs);
    const Values out = inline_graph(lin.linear, linear_in);
    Reader<Value> next{out};
    Values results;
    for (std::size_t i = 0; i < lin.active_out.size(); ++i) {
      if (lin.active_out[i]) {
        results.push_back(next.next());
      } else if (i < p.carry && lin.active_in[p.consts + i]) {
        results.push_back(zeros_of(p.body.type(p.body.outputs()[i])));
      }
    }
    return results;
  });
}

Values invariant_values(const Site& s, const ScanLayout& p, const Graph& primal,
                        const std::vector<ValueId>& ids) {
  if (ids.empty()) return {};
  const Graph g = subgraph(primal, primal.inputs().first(p.consts), ids);
  return inline_graph(g, s.in.first(p.consts));
}

// The loop itself; outputs carry, ys, stacked residuals.
Values primal_loop(const Site& s, const ScanLayout& p, const Graph& primal,
                   const std::vector<ValueId>& stacked) {
  const auto outs = primal.outputs().first(p.carry + p.ys);
  std::vector<ValueId> ids(outs.begin(), outs.end());
  append(ids, stacked);
  Attrs attrs = s.attrs;
  attrs.set("body",
            std::make_shared<const Graph>(subgraph(primal, primal.inputs(), ids)));
  return emit(s.op, {s.in.begin(), s.in.end()}, std::move(attrs), s.loc);
}

}  // namespace

RegionJvp scan_jvp(const Site& s, std::span<const Tangent> tangents) {
  const ScanLayout p = scan_layout(s.attrs);
  const Linearized lin = linearize_body(p, present(tangents));
  const ResidualSources r = residual_sources(p, lin);
  RegionJvp result;
  result.outs = primal_loop(s, p, lin.primal, r.stacked);
  Values kept(result.outs.begin() + static_cast<std::ptrdiff_t>(p.carry + p.ys),
              result.outs.end());
  result.outs.resize(p.carry + p.ys);

  ScanNode node{.length = p.length, .reverse = p.reverse};
  node.consts = invariant_values(s, p, lin.primal, r.invariant);
  append(node.consts, present_values(tangents.first(p.consts)));
  for (std::size_t i = p.consts; i < p.consts + p.carry; ++i)
    if (lin.active_in[i]) node.carry.push_back(materialize(tangents[i], s.in[i].type()));
  Reader<Value> stacked{kept};
  for (const std::ptrdiff_t x : r.xs)
    node.xs.push_back(x < 0 ? stacked.next()
                            : s.in[p.consts + p.carry + static_cast<std::size_t>(x)]);
  append(node.xs, present_values(tangents.subspan(p.consts + p.carry)));
  node.body = linear_body(p, lin, r, node);

  const Values moved = emit_scan(std::move(node), s.loc);
  Reader<Value> next{moved};
  for (std::size_t i = 0; i < p.carry + p.ys; ++i) {
    const bool moves = i < p.carry ? lin.active_in[p.consts + i] : lin.active_out[i];
    result.tangents.push_back(moves ? Tangent(next.next()) : std::nullopt);
  }
  return result;
}

namespace {

// Which parts of a linear body take part in its transpose.
struct Turned {
  std::vector<bool> linear;  // by body input
  std::vector<bool> ct_out;  // by body output: a cotangent arrives
  std::vector<bool> ct_in;   // by body input: a cotangent leaves
};

std::vector<bool> linear_inputs(const Site& s, const ScanLayout& p) {
  std::vector<bool> linear = s.linear;
  linear.resize(s.in.size());
  for (bool grew = true; grew;) {
    grew = false;
    std::vector<ValueId> seeds;
    for (std::size_t i = 0; i < linear.size(); ++i)
      if (linear[i]) seeds.push_back(p.body.inputs()[i]);
    const std::vector<bool> reached = depends_on(p.body, seeds);
    for (std::size_t i = 0; i < p.carry; ++i) {
      if (linear[p.consts + i] || !reached[p.body.outputs()[i].index]) continue;
      linear[p.consts + i] = grew = true;
    }
  }
  for (std::size_t i = 0; i < p.carry; ++i)
    BT_REQUIRE_KIND(linear[p.consts + i], ErrorKind::not_supported,
                    fmt::format("scan: reverse mode through a loop that carries both "
                                "linear and other values (carry {})",
                                i));
  return linear;
}

// Transposes one step. `others`: the inputs that are not linear; `ct`: those that arrive.
std::vector<Tangent> pull_step(const ScanLayout& p, const Turned& t,
                               std::span<const Value> others, std::span<const Value> ct) {
  Reader<Value> next_other{others}, next_ct{ct};
  Values inputs(t.linear.size());
  for (std::size_t i = 0; i < t.linear.size(); ++i)
    if (!t.linear[i]) inputs[i] = next_other.next();
  std::vector<Tangent> arriving;
  for (const bool a : t.ct_out)
    arriving.push_back(a ? Tangent(next_ct.next()) : std::nullopt);
  return transpose_values(p.body, t.linear, inputs, arriving);
}

// Which cotangents leave the body when those in ct_out arrive.
std::vector<bool> leaving(const ScanLayout& p, const Turned& t) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < t.linear.size(); ++i)
    if (!t.linear[i]) types.push_back(p.body.type(p.body.inputs()[i]));
  const std::size_t others = types.size();
  for (std::size_t i = 0; i < t.ct_out.size(); ++i)
    if (t.ct_out[i]) types.push_back(p.body.type(p.body.outputs()[i]));
  std::vector<bool> marks;
  write_graph(types, [&](const Values& in) {
    const std::span<const Value> all = in;
    marks = present(pull_step(p, t, all.first(others), all.subspan(others)));
    return Values{};
  });
  return marks;
}

Turned turned(const Site& s, const ScanLayout& p, std::span<const Tangent> ct) {
  Turned t{.linear = linear_inputs(s, p), .ct_out = present(ct), .ct_in = {}};
  while (true) {
    t.ct_in = leaving(p, t);
    bool grew = false;
    for (std::size_t i = 0; i < p.carry; ++i) {
      if (!t.ct_in[p.consts + i] || t.ct_out[i]) continue;
      t.ct_out[i] = grew = true;
    }
    if (!grew) return t;
  }
}

// other consts | ct carry, sums for linear consts | other xs, ct ys
//   -> ct carry, sums | ct xs
GraphPtr turned_body(const ScanLayout& p, const Turned& t, const ScanNode& node,
                     std::size_t num_ct_carry) {
  std::vector<Type> types = types_of(node.consts);
  append(types, types_of(node.carry));
  for (const Value& x : node.xs) types.push_back(step_type(x.type()));
  std::size_t other_xs = 0;
  for (std::size_t i = p.consts + p.carry; i < t.linear.size(); ++i)
    other_xs += t.linear[i] ? 0 : 1;
  return write_graph(types, [&](const Values& in) {
    Reader<Value> reader{in};
    const auto consts = reader.take(node.consts.size());
    Values others(consts.begin(), consts.end());
    const auto ct_carry = reader.take(num_ct_carry);
    Values arriving(ct_carry.begin(), ct_carry.end());
    auto sums = Reader<Value>(reader.take(node.carry.size() - num_ct_carry));
    append(others, reader.take(other_xs));
    append(arriving, reader.take(node.xs.size() - other_xs));
    const std::vector<Tangent> out = pull_step(p, t, others, arriving);
    Values results;
    for (std::size_t i = 0; i < p.carry; ++i)
      if (t.ct_out[i])
        results.push_back(
            materialize(out[p.consts + i], p.body.type(p.body.outputs()[i])));
    for (std::size_t i = 0; i < p.consts; ++i)
      if (t.ct_in[i]) results.push_back(sums.next() + *out[i]);
    append(results,
           present_values(std::span<const Tangent>(out).subspan(p.consts + p.carry)));
    return results;
  });
}

}  // namespace

std::vector<Tangent> scan_transpose(const Site& s, std::span<const Tangent> ct) {
  const ScanLayout p = scan_layout(s.attrs);
  const Turned t = turned(s, p, ct);
  ScanNode node{.length = p.length, .reverse = !p.reverse};
  for (std::size_t i = 0; i < p.consts; ++i)
    if (!t.linear[i]) node.consts.push_back(s.in[i]);
  for (std::size_t i = 0; i < p.carry; ++i)
    if (t.ct_out[i]) node.carry.push_back(materialize(ct[i], s.out[i].type()));
  const std::size_t num_ct_carry = node.carry.size();
  for (std::size_t i = 0; i < p.consts; ++i)
    if (t.ct_in[i]) node.carry.push_back(zeros_of(s.in[i].type()));
  for (std::size_t i = p.consts + p.carry; i < s.in.size(); ++i)
    if (!t.linear[i]) node.xs.push_back(s.in[i]);
  append(node.xs, present_values(ct.subspan(p.carry)));
  node.body = turned_body(p, t, node, num_ct_carry);

  const Values out = emit_scan(std::move(node), s.loc);
  Reader<Value> next{out};
  std::vector<Tangent> result(s.in.size());
  for (std::size_t i = 0; i < p.carry; ++i)
    if (t.ct_out[i]) result[p.consts + i] = next.next();
  for (std::size_t i = 0; i < p.consts; ++i)
    if (t.ct_in[i]) result[i] = next.next();
  for (std::size_t i = p.consts + p.carry; i < s.in.size(); ++i)
    if (t.ct_in[i]) result[i] = next.next();
  for (std::size_t i = 0; i < s.in.size(); ++i)
    if (!s.is_linear(i)) result[i].reset();
  return result;
}

}  // namespace braintrace
