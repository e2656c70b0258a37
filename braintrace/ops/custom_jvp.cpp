// SPDX-License-Identifier: Apache-2.0
// A function with its own derivative (surrogate spikes): two sub-graphs, one for the
// values, one for the tangents.
//   primal: inputs -> outputs
//   jvp:    inputs, tangents of the float inputs -> tangents of the float outputs
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> floats_of(std::span<const Type> types) {
  std::vector<Type> floats;
  for (const Type& t : types)
    if (is_float(t.dtype)) floats.push_back(t);
  return floats;
}

std::string list_custom_jvp(std::span<const Type> types) {
  std::string text;
  for (const Type& t : types) text += (text.empty() ? "" : ", ") + to_string(t);
  return "(" + text + ")";
}

void require_types(std::string_view what, std::span<const Type> want,
                   std::span<const Type> got) {
  BT_REQUIRE_KIND(std::equal(want.begin(), want.end(), got.begin(), got.end()),
                  ErrorKind::type,
                  fmt::format("custom_jvp: {} must be {}, got {}", what,
                              list_custom_jvp(want), list_custom_jvp(got)));
}

// How a value depends on the inputs: not, on inputs of another shape, or position by
// position on inputs of the shape.
enum class Reach { none, global, local };

// The first node that moves values between positions of the shape; null if none does.
const Node* mixing_node(const Graph& g, const Shape& shape) {
  std::vector<Reach> reach(g.num_values(), Reach::none);
  for (ValueId v : g.inputs())
    reach[v.index] = g.type(v).shape == shape ? Reach::local : Reach::global;
  for (const Node& n : g.nodes()) {
    const std::vector<Type> in = g.types_of(n.inputs), out = g.types_of(n.outputs);
    const PositionMap map = positions_of(*n.op, {in, out, n.attrs});
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Reach from = reach[n.inputs[i].index];
      for (std::size_t o = 0; o < out.size(); ++o) {
        const InputFlow& flow = map.flow.at(i).at(o);
        if (from == Reach::none || !flow.reaches) continue;
        if (from == Reach::local && !is_identity(flow, in[i].rank())) return &n;
        Reach& to = reach[n.outputs[o].index];
        to = std::max(to, from);
      }
    }
  }
  return nullptr;
}

void require_elementwise(std::string_view what, const Graph& g) {
  if (g.outputs().empty()) return;
  const Shape shape = g.type(g.outputs()[0]).shape;
  for (const Type& t : g.output_types())
    BT_REQUIRE(t.shape == shape,
               fmt::format("custom_jvp: declared elementwise, but outputs of {} are {}",
                           what, list_custom_jvp(g.output_types())));
  const Node* n = mixing_node(g, shape);
  BT_REQUIRE(!n, fmt::format("custom_jvp: declared elementwise, but {} moves values "
                             "between positions in '{}'",
                             what, n->op->name));
}

std::vector<Type> infer_custom_jvp(std::span<const Type> in, const Attrs& attrs) {
  const Graph& primal = *attrs.graph("primal");
  const Graph& jvp = *attrs.graph("jvp");
  require_types("inputs of primal", in, primal.input_types());
  const std::vector<Type> out = primal.output_types();
  BT_REQUIRE(!out.empty(), "custom_jvp: primal must have an output");
  std::vector<Type> with_tangents(in.begin(), in.end());
  for (const Type& t : floats_of(in)) with_tangents.push_back(t);
  require_types("inputs of jvp", with_tangents, jvp.input_types());
  require_types("outputs of jvp", floats_of(out), jvp.output_types());
  if (attrs.flag("elementwise")) {
    require_elementwise("primal", primal);
    require_elementwise("jvp", jvp);
  }
  return out;
}

void eval_custom_jvp(const Kernel& k) {
  std::vector<Array> out = eval_graph(*k.attrs.graph("primal"), k.in);
  for (std::size_t i = 0; i < out.size(); ++i) k.out[i] = out[i].contiguous();
}

Lowering lower_custom_jvp(const Signature&) { return lowering::Region{}; }

std::vector<Tangent> jvp_custom_jvp(const Site& s, std::span<const Tangent> d) {
  std::vector<Tangent> out(s.out.size());
  if (std::none_of(d.begin(), d.end(), [](const Tangent& t) { return t.has_value(); }))
    return out;
  Values in(s.in.begin(), s.in.end());
  for (std::size_t i = 0; i < d.size(); ++i)
    if (is_float(s.in[i].dtype())) in.push_back(d[i] ? *d[i] : zeros_like(s.in[i]));
  const Values tangents = inline_graph(*s.attrs.graph("jvp"), in);
  auto next = tangents.begin();
  for (std::size_t o = 0; o < out.size(); ++o)
    if (is_float(s.out[o].dtype())) out[o] = *next++;
  return out;
}

InputFlow flow(const Type& in, const Type& out) {
  if (in.shape == out.shape) return identity_flow(out.rank());
  if (in.rank() > 0) return unknown_flow();
  InputFlow f;
  f.axes.assign(out.shape.size(), {Flow::fresh, -1});
  return f;
}

PositionMap positions_custom_jvp(const Signature& s) {
  const bool local = s.attrs.flag("elementwise");
  PositionMap map;
  for (const Type& in : s.in) {
    auto& row = map.flow.emplace_back();
    for (const Type& out : s.out) row.push_back(local ? flow(in, out) : unknown_flow());
  }
  return map;
}

Graph batched(const Graph& g, std::span<const Type> types,
              std::span<const BatchAxis> axes, std::int64_t size) {
  const std::shared_ptr<Builder> builder = Builder::create();
  Values in;
  for (const Type& t : types) in.push_back(builder->input(t));
  BatchResult r = batch_graph(g, in, axes);
  for (std::size_t i = 0; i < r.values.size(); ++i)
    r.values[i] = batch_in_front(r.values[i], r.axes[i], size);
  return builder->finish(r.values);
}

// Both sub-graphs get the lanes inside. An elementwise function keeps one shape for all
// inputs that had it, so that it may stay elementwise.
BatchResult batch_custom_jvp(const Site& s, std::span<const BatchAxis> axes) {
  const Graph& primal = *s.attrs.graph("primal");
  const std::int64_t size = batch_size(s.in, axes);
  const Shape shape = primal.type(primal.outputs()[0]).shape;
  const bool local = s.attrs.flag("elementwise");
  Values in;
  std::vector<Type> types, tangent_types;
  std::vector<BatchAxis> in_axes, tangent_axes;
  for (std::size_t i = 0; i < s.in.size(); ++i) {
    const bool stretch = local && (axes[i] || s.in[i].shape() == shape);
    in.push_back(stretch ? batch_in_front(s.in[i], axes[i], size) : s.in[i]);
    in_axes.push_back(stretch ? BatchAxis(0) : axes[i]);
    types.push_back(in[i].type());
    if (!is_float(types[i].dtype)) continue;
    tangent_types.push_back(types[i]);
    tangent_axes.push_back(in_axes[i]);
  }
  Graph f = batched(primal, types, in_axes, size);
  types.insert(types.end(), tangent_types.begin(), tangent_types.end());
  in_axes.insert(in_axes.end(), tangent_axes.begin(), tangent_axes.end());
  Graph df = batched(*s.attrs.graph("jvp"), types, in_axes, size);
  const Shape wide = f.type(f.outputs()[0]).shape;
  const bool still_local = local && !mixing_node(f, wide) && !mixing_node(df, wide);
  BatchResult r{.values = emit(s.op, std::move(in),
                               {{"primal", std::make_shared<const Graph>(std::move(f))},
                                {"jvp", std::make_shared<const Graph>(std::move(df))},
                                {"elementwise", still_local}},
                               s.loc),
                .axes = {}};
  r.axes.resize(r.values.size(), 0);
  return r;
}

Rewrite inline_body_custom_jvp(const Site& s) {
  return inline_graph(*s.attrs.graph("primal"), s.in);
}

// ---- front end ----

struct TracedRule {
  Graph graph;
  Values captured;
};

TracedRule trace_custom_jvp(const ValuesFn& f, std::span<const Type> types) {
  const std::shared_ptr<Builder> builder = Builder::create();
  Values in;
  for (const Type& t : types) in.push_back(builder->input(t));
  Graph g = builder->finish(f(in));
  return {std::move(g), {builder->captured().begin(), builder->captured().end()}};
}

std::size_t place(const Values& values, const Value& v) {
  const auto it = std::find_if(values.begin(), values.end(), [&](const Value& w) {
    return w.builder() == v.builder() && w.id() == v.id();
  });
  return static_cast<std::size_t>(it - values.begin());
}

// The traced function with all captured values as inputs behind its first `n`, and unused
// tangents of these at the end.
GraphPtr with_captured(const TracedRule& f, std::size_t n, const Values& all,
                       std::span<const Type> unused) {
  const std::shared_ptr<Builder> builder = Builder::create();
  const std::vector<Type> types = f.graph.input_types();
  const std::size_t declared = types.size() - f.captured.size();
  Values in, outer;
  for (std::size_t i = 0; i < n; ++i) in.push_back(builder->input(types[i]));
  for (const Value& v : all) outer.push_back(builder->input(v.type()));
  for (std::size_t i = n; i < declared; ++i) in.push_back(builder->input(types[i]));
  for (const Type& t : unused) builder->input(t);
  for (const Value& v : f.captured) in.push_back(outer[place(all, v)]);
  return std::make_shared<Graph>(builder->finish(inline_graph(f.graph, in)));
}

}  // namespace

const OpDef custom_jvp_op = {
    .name = "custom_jvp",
    .traits = Trait::region,
    .arity = kVariadic,
    .attrs = {{"primal", AttrKind::graph},
              {"jvp", AttrKind::graph},
              {"elementwise", AttrKind::boolean}},
    .infer = infer_custom_jvp,
    .eval = eval_custom_jvp,
    .lower = lower_custom_jvp,
    .code = "custom_jvp({primal}, {jvp}, $*)",
    .jvp = jvp_custom_jvp,
    .batch = batch_custom_jvp,
    .positions = positions_custom_jvp,
    .inline_body = inline_body_custom_jvp,
};

Values custom_jvp(const Values& inputs, const ValuesFn& primal, const ValuesFn& jvp,
                  CustomJvpOptions options, Loc loc) {
  std::vector<Type> types;
  for (const Value& v : inputs) types.push_back(v.type());
  std::vector<Type> with_tangents = types;
  for (const Type& t : floats_of(types)) with_tangents.push_back(t);

  const TracedRule f = trace_custom_jvp(primal, types);
  const TracedRule df = trace_custom_jvp(jvp, with_tangents);
  Values captured = f.captured;
  for (const Value& v : df.captured)
    if (place(captured, v) == captured.size()) captured.push_back(v);

  std::vector<Type> captured_types;
  Values operands = inputs;
  for (const Value& v : captured) {
    captured_types.push_back(v.type());
    operands.push_back(stop_gradient(v));
  }
  const std::size_t n = inputs.size();
  Attrs attrs = {
      {"primal", with_captured(f, n, captured, {})},
      {"jvp", with_captured(df, n, captured, floats_of(captured_types))},
      {"elementwise", options.elementwise},
  };
  return emit(custom_jvp_op, std::move(operands), std::move(attrs), loc);
}

}  // namespace braintrace
