// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/calculus.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/constant.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/elementwise.h"

namespace braintrace {
namespace {

bool any_present(std::span<const Tangent> tangents) {
  return std::any_of(tangents.begin(), tangents.end(),
                     [](const Tangent& t) { return t.has_value(); });
}

bool is_flat(const OpDef& op) {
  return has(op.traits, Trait::no_tangent) || has(op.traits, Trait::stops_gradient);
}

// A linear map is its own derivative; absent tangents are zeros beside present ones.
std::vector<Tangent> jvp_of_linear(const Site& s, std::span<const Tangent> tangents) {
  Values in;
  for (std::size_t i = 0; i < s.in.size(); ++i)
    in.push_back(materialize(tangents[i], s.in[i].type()));
  const Values out = emit(s.op, std::move(in), s.attrs, s.loc);
  return {out.begin(), out.end()};
}

void check_tangents(const Graph& g, std::span<const Tangent> tangents) {
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (!tangents[i]) continue;
    const Type& want = g.type(g.inputs()[i]);
    BT_REQUIRE_KIND(
        is_float(want.dtype), ErrorKind::type,
        fmt::format("jvp: input {} is {} and has no tangent", i, to_string(want)));
    BT_REQUIRE_KIND(tangents[i]->type() == want, ErrorKind::type,
                    fmt::format("jvp: tangent {} must be {}, got {}", i, to_string(want),
                                to_string(tangents[i]->type())));
  }
}

void check_active(const Graph& g, const std::vector<bool>& active) {
  BT_REQUIRE(active.size() == g.inputs().size(),
             fmt::format("linearize: the program has {} inputs, got {} active marks",
                         g.inputs().size(), active.size()));
  for (std::size_t i = 0; i < active.size(); ++i) {
    const Type& t = g.type(g.inputs()[i]);
    BT_REQUIRE_KIND(!active[i] || is_float(t.dtype), ErrorKind::type,
                    fmt::format("linearize: input {} is {} and cannot be differentiated",
                                i, to_string(t)));
  }
}

// Values of the right types that no program may use: their builder is closed.
Values placeholders(const Graph& g) {
  const auto builder = Builder::create();
  Values out;
  for (std::uint32_t i = 0; i < g.num_values(); ++i)
    out.push_back(builder->input(g.type({i})));
  builder->finish({});
  return out;
}

// What the nodes that depend on tangents read from the others, literals excepted.
std::vector<ValueId> residuals_of_calculus(const Graph& g,
                                           const std::vector<bool>& linear,
                                           std::span<const ValueId> tangent_outputs) {
  std::vector<bool> live(g.num_values(), false), known(g.num_values(), false);
  for (const Node& n : g.nodes())
    if (literal(n)) known[n.outputs[0].index] = true;
  std::vector<ValueId> residuals;
  auto visit = [&](ValueId v) {
    if (linear[v.index]) {
      live[v.index] = true;
    } else if (!known[v.index]) {
      known[v.index] = true;
      residuals.push_back(v);
    }
  };
  for (ValueId v : tangent_outputs) visit(v);
  for (std::size_t i = g.nodes().size(); i-- > 0;) {
    const Node& n = g.nodes()[i];
    const bool used = std::any_of(n.outputs.begin(), n.outputs.end(),
                                  [&](ValueId v) { return live[v.index]; });
    if (used) std::for_each(n.inputs.begin(), n.inputs.end(), visit);
  }
  std::sort(residuals.begin(), residuals.end());
  return residuals;
}

// Walks a linear program backwards. Values that do not depend on the linear inputs are
// computed; of the others only the types are known.
class Transposer {
 public:
  Transposer(const Graph& g, const std::vector<bool>& linear,
             std::span<const Value> inputs)
      : g_(g), env_(placeholders(g)), ct_(g.num_values()) {
    std::vector<ValueId> seeds;
    for (std::size_t i = 0; i < linear.size(); ++i) {
      if (linear[i]) seeds.push_back(g.inputs()[i]);
      if (!linear[i]) env_[g.inputs()[i].index] = inputs[i];
    }
    reached_ = depends_on(g, seeds);
    for (const Node& n : g.nodes())
      if (!is_linear(n)) compute(n);
  }

  void receive(ValueId v, const Tangent& t) {
    if (reached_[v.index]) ct_[v.index] = sum_tangents(ct_[v.index], t);
  }
  void run() {
    for (std::size_t i = g_.nodes().size(); i-- > 0;)
      if (is_linear(g_.nodes()[i])) turn(g_.nodes()[i]);
  }
  const Tangent& cotangent(ValueId v) const { return ct_[v.index]; }

 private:
  bool is_linear(const Node& n) const {
    return !n.outputs.empty() && reached_[n.outputs[0].index];
  }
  Values values(std::span<const ValueId> ids) const {
    Values v;
    for (ValueId id : ids) v.push_back(env_[id.index]);
    return v;
  }
  void compute(const Node& n) {
    const Values out = emit(*n.op, values(n.inputs), n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k) env_[n.outputs[k].index] = out[k];
  }
  void turn(const Node& n) {
    std::vector<Tangent> ct_out;
    for (ValueId v : n.outputs) ct_out.push_back(ct_[v.index]);
    if (!any_present(ct_out)) return;
    BT_REQUIRE_KIND(
        n.op->transpose, ErrorKind::not_implemented,
        fmt::format("{}: no transpose rule, so no reverse mode through it", n.op->name));
    const Values in = values(n.inputs), out = values(n.outputs);
    Site s{*n.op, in, out, n.attrs, n.loc};
    for (ValueId v : n.inputs) s.linear.push_back(reached_[v.index]);
    const std::vector<Tangent> ct_in = n.op->transpose(s, ct_out);
    BT_INVARIANT(ct_in.size() == n.inputs.size());
    for (std::size_t k = 0; k < ct_in.size(); ++k) receive(n.inputs[k], ct_in[k]);
  }

  const Graph& g_;
  Values env_;
  std::vector<bool> reached_;
  std::vector<Tangent> ct_;
};

}  // namespace

Value zeros_of(const Type& t) { return zeros(t.shape, t.dtype); }

Value materialize(const Tangent& t, const Type& type) { return t ? *t : zeros_of(type); }

JvpResult jvp_node(const Site& s, std::span<const Tangent> tangents) {
  BT_INVARIANT(s.in.size() == tangents.size());
  const bool moves = any_present(tangents) && !is_flat(s.op);
  if (moves && s.op.jvp_region) {
    RegionJvp r = s.op.jvp_region(s, tangents);
    BT_INVARIANT(r.outs.size() == r.tangents.size());
    return {std::move(r.outs), std::move(r.tangents)};
  }
  JvpResult r{.outs = emit(s.op, {s.in.begin(), s.in.end()}, s.attrs, s.loc),
              .tangents = {}};
  r.tangents.resize(r.outs.size());
  if (!moves) return r;
  const Site site{s.op, s.in, r.outs, s.attrs, s.loc};
  if (s.op.jvp) {
    r.tangents = s.op.jvp(site, tangents);
  } else {
    BT_REQUIRE_KIND(has(s.op.traits, Trait::linear), ErrorKind::not_implemented,
                    fmt::format("{}: no derivative rule (jvp)", s.op.name));
    r.tangents = jvp_of_linear(site, tangents);
  }
  BT_INVARIANT(r.tangents.size() == r.outs.size());
  return r;
}

JvpResult jvp_values(const Graph& g, std::span<const Value> inputs,
                     std::span<const Tangent> tangents) {
  BT_REQUIRE(inputs.size() == g.inputs().size() && tangents.size() == inputs.size(),
             fmt::format("jvp: the program has {} inputs, got {} values and {} tangents",
                         g.inputs().size(), inputs.size(), tangents.size()));
  check_tangents(g, tangents);
  Values env(g.num_values());
  std::vector<Tangent> tan(g.num_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    env[g.inputs()[i].index] = inputs[i];
    tan[g.inputs()[i].index] = tangents[i];
  }
  for (const Node& n : g.nodes()) {
    if (const Array* value = literal(n)) {
      env[n.outputs[0].index] = *value;
      continue;
    }
    Values in;
    std::vector<Tangent> dx;
    for (ValueId v : n.inputs) {
      in.push_back(env[v.index]);
      dx.push_back(tan[v.index]);
    }
    JvpResult r = jvp_node({*n.op, in, {}, n.attrs, n.loc}, dx);
    for (std::size_t k = 0; k < n.outputs.size(); ++k) {
      const ValueId v = n.outputs[k];
      BT_INVARIANT(!r.tangents[k] || r.tangents[k]->type() == g.type(v));
      env[v.index] = std::move(r.outs[k]);
      tan[v.index] = std::move(r.tangents[k]);
    }
  }
  JvpResult result;
  for (ValueId v : g.outputs()) {
    result.outs.push_back(env[v.index]);
    result.tangents.push_back(tan[v.index]);
  }
  return result;
}

Linearized linearize(const Graph& g, const std::vector<bool>& active) {
  check_active(g, active);
  const auto builder = Builder::create();
  Values inputs;
  for (ValueId v : g.inputs()) inputs.push_back(builder->input(g.type(v)));
  std::vector<Tangent> tangents(active.size());
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) tangents[i] = builder->input(inputs[i].type());
  JvpResult r = jvp_values(g, inputs, tangents);

  Linearized out{.primal = {}, .linear = {}, .active_in = active, .active_out = {}};
  Values results = r.outs;
  for (const Tangent& t : r.tangents) {
    out.active_out.push_back(t.has_value());
    if (t) results.push_back(*t);
  }
  const Graph both = builder->finish(results);
  const auto primal_in = both.inputs().first(inputs.size());
  const auto tangent_in = both.inputs().subspan(inputs.size());
  const auto primal_out = both.outputs().first(r.outs.size());
  const auto tangent_out = both.outputs().subspan(r.outs.size());
  const std::vector<ValueId> residuals =
      residuals_of_calculus(both, depends_on(both, tangent_in), tangent_out);

  std::vector<ValueId> ids(primal_out.begin(), primal_out.end());
  ids.insert(ids.end(), residuals.begin(), residuals.end());
  out.primal = subgraph(both, primal_in, ids);
  ids = residuals;
  ids.insert(ids.end(), tangent_in.begin(), tangent_in.end());
  out.linear = subgraph(both, ids, tangent_out);
  out.num_residuals = residuals.size();
  return out;
}

std::vector<Tangent> transpose_values(const Graph& g, const std::vector<bool>& linear,
                                      std::span<const Value> inputs,
                                      std::span<const Tangent> cotangents) {
  BT_INVARIANT(linear.size() == g.inputs().size() && inputs.size() == linear.size());
  BT_INVARIANT(cotangents.size() == g.outputs().size());
  Transposer t(g, linear, inputs);
  for (std::size_t i = 0; i < cotangents.size(); ++i)
    t.receive(g.outputs()[i], cotangents[i]);
  t.run();
  std::vector<Tangent> result(linear.size());
  for (std::size_t i = 0; i < linear.size(); ++i)
    if (linear[i]) result[i] = t.cotangent(g.inputs()[i]);
  return result;
}

VjpResult vjp_values(const Graph& g, const std::vector<bool>& active,
                     std::span<const Value> inputs, std::span<const Tangent> cotangents) {
  BT_REQUIRE(cotangents.size() == g.outputs().size(),
             fmt::format("vjp: the program has {} outputs, got {} cotangents",
                         g.outputs().size(), cotangents.size()));
  const Linearized lin = linearize(g, active);
  Values outs = inline_graph(lin.primal, inputs);
  Values linear_in(outs.end() - static_cast<std::ptrdiff_t>(lin.num_residuals),
                   outs.end());
  outs.resize(g.outputs().size());
  linear_in.resize(lin.linear.inputs().size());
  std::vector<bool> marks(lin.linear.inputs().size(), true);
  std::fill_n(marks.begin(), lin.num_residuals, false);
  std::vector<Tangent> ct;
  for (std::size_t i = 0; i < cotangents.size(); ++i)
    if (lin.active_out[i]) ct.push_back(cotangents[i]);
  const std::vector<Tangent> in_ct = transpose_values(lin.linear, marks, linear_in, ct);

  VjpResult result{.outs = std::move(outs), .cotangents = {}};
  std::size_t next = lin.num_residuals;
  for (const bool a : active)
    result.cotangents.push_back(a ? in_ct[next++] : std::nullopt);
  return result;
}

std::vector<bool> float_inputs(const Graph& g) {
  std::vector<bool> marks;
  for (ValueId v : g.inputs()) marks.push_back(is_float(g.type(v).dtype));
  return marks;
}

}  // namespace braintrace
