// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/position_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

using Matrix = std::vector<bool>;

Matrix identity(std::int64_t d) {
  Matrix m(static_cast<std::size_t>(d * d), false);
  for (std::int64_t i = 0; i < d; ++i) m[static_cast<std::size_t>(i * (d + 1))] = true;
  return m;
}

Matrix all_ones(std::int64_t d) { return Matrix(static_cast<std::size_t>(d * d), true); }

AxisAdjacency everything(const Shape& v, std::string reason) {
  AxisAdjacency a{.conservative = true, .reason = std::move(reason)};
  for (std::int64_t d : v) a.axes.push_back(all_ones(d));
  return a;
}

Matrix product(const Matrix& a, const Matrix& b, std::int64_t n) {
  const auto d = static_cast<std::size_t>(n);
  Matrix c(d * d, false);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t k = 0; k < d; ++k)
      for (std::size_t j = 0; a[i * d + k] && j < d; ++j)
        if (b[k * d + j]) c[i * d + j] = true;
  return c;
}

void join(Matrix& a, const Matrix& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
}

// What the trainable op's rule says about the last axis when x is a whole group value.
std::optional<Matrix> rule_pattern(const Graph& g, const Node& n, std::size_t input,
                                   const Shape& v) {
  if (!n.op->etp || !n.op->etp->adjacency || v.empty()) return std::nullopt;
  const NodeTypes types = types_of(g, n);
  if (n.op->etp->x != static_cast<int>(input)) return std::nullopt;
  if (types.in[input].shape != v || types.out[0].shape != v) return std::nullopt;
  const auto a = n.op->etp->adjacency({types.in, types.out, n.attrs}, v.back());
  return a ? std::optional(a->depends) : std::nullopt;
}

// ---- per axis: where each axis of a value comes from, and by what pattern -----------

struct AxisOrigin {
  std::int64_t axis = -1;  // position axis, -1 = none
  Matrix reads;            // entry p of this axis may read position q
};
using Origins = std::vector<AxisOrigin>;

class AxisWalk {
 public:
  explicit AxisWalk(const HiddenGroup& g)
      : group_(g),
        program_(g.transition_program),
        v_(g.varshape()),
        env_(program_.num_values()) {}

  AxisAdjacency run() {
    const std::size_t constants = group_.transition_constants.size();
    for (std::size_t i = constants; i < program_.inputs().size(); ++i) {
      const ValueId id = program_.inputs()[i];
      Origins o(static_cast<std::size_t>(program_.type(id).rank()));
      for (std::size_t k = 0; k < v_.size(); ++k)
        o[k] = {static_cast<std::int64_t>(k), identity(v_[k])};
      env_[id.index] = {std::move(o)};
    }
    for (const Node& n : program_.nodes()) visit(n);
    return collect();
  }

 private:
  void visit(const Node& n) {
    const NodeTypes types = types_of(program_, n);
    const PositionMap map = positions_of(*n.op, {types.in, types.out, n.attrs});
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      for (const Origins& in : env_[n.inputs[i].index])
        for (std::size_t o = 0; o < n.outputs.size(); ++o)
          add(n.outputs[o], through(n, i, map.flow[i][o], in, types.out[o]));
  }

  Origins through(const Node& n, std::size_t input, const InputFlow& f, const Origins& in,
                  const Type& out_type) const {
    Origins out(static_cast<std::size_t>(out_type.rank()));
    if (!f.known) return out;
    for (std::size_t k = 0; k < f.axes.size(); ++k) {
      const AxisFlow& a = f.axes[k];
      if (a.flow == Flow::same && a.in_axis >= 0)
        out[k] = in[static_cast<std::size_t>(a.in_axis)];
    }
    if (const auto pattern = rule_pattern(program_, n, input, v_)) {
      const AxisOrigin& last = in.back();
      if (last.axis == static_cast<std::int64_t>(v_.size()) - 1)
        out.back() = {last.axis, product(*pattern, last.reads, v_.back())};
    }
    return out;
  }

  // Several ways of dependence are kept side by side, equal ones once.
  void add(ValueId v, Origins o) {
    auto same = [&](const Origins& other) {
      return std::equal(other.begin(), other.end(), o.begin(), o.end(),
                        [](const AxisOrigin& a, const AxisOrigin& b) {
                          return a.axis == b.axis && a.reads == b.reads;
                        });
    };
    auto& list = env_[v.index];
    if (std::none_of(list.begin(), list.end(), same)) list.push_back(std::move(o));
  }

  AxisAdjacency collect() const {
    AxisAdjacency a;
    for (std::int64_t d : v_) a.axes.push_back(identity(d));
    for (ValueId out : program_.outputs())
      for (const Origins& o : env_[out.index])
        for (std::size_t k = 0; k < v_.size(); ++k)
          join(a.axes[k],
               o[k].axis == static_cast<std::int64_t>(k) ? o[k].reads : all_ones(v_[k]));
    return a;
  }

  const HiddenGroup& group_;
  const Graph& program_;
  const Shape v_;
  std::vector<std::vector<Origins>> env_;
};

// ---- the reference's walk -----------------------------------------------------------

bool leads_with(const Shape& shape, const Shape& v) {
  return shape.empty() ||
         (shape.size() >= v.size() && std::equal(v.begin(), v.end(), shape.begin()));
}

// Does it keep positions, as far as the reference can tell?
bool keeps_positions(const Graph& p, const Node& n, const Shape& v,
                     const std::vector<bool>& stretched) {
  if (!has(n.op->traits, Trait::elementwise) && !n.op->etp) return false;
  for (ValueId in : n.inputs)
    if (stretched[in.index]) return false;
  const NodeTypes types = types_of(p, n);
  auto fits = [&](const Type& t) { return leads_with(t.shape, v); };
  return std::all_of(types.in.begin(), types.in.end(), fits) &&
         std::all_of(types.out.begin(), types.out.end(), fits);
}

AxisAdjacency reference_walk(const HiddenGroup& g, const std::set<ValueId>& from_less) {
  const Graph& p = g.transition_program;
  const Shape& v = g.varshape();
  std::vector<bool> reached(p.num_values(), false), stretched(p.num_values(), false);
  const std::size_t constants = g.transition_constants.size();
  for (std::size_t i = 0; i < constants; ++i)
    if (from_less.contains(g.transition_constants[i]))
      stretched[p.inputs()[i].index] = true;
  for (std::size_t i = constants; i < p.inputs().size(); ++i)
    reached[p.inputs()[i].index] = true;
  std::optional<Matrix> last;
  for (const Node& n : p.nodes()) {
    std::vector<std::size_t> hidden;
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (reached[n.inputs[i].index]) hidden.push_back(i);
    if (hidden.empty()) continue;
    for (ValueId out : n.outputs) reached[out.index] = true;
    if (is_structural_etp(n) || is_product(p, n)) {
      if (last) return everything(v, "more than one mixing op");
      const auto pattern =
          hidden.size() == 1 ? rule_pattern(p, n, hidden[0], v) : std::nullopt;
      if (!pattern)
        return everything(v, fmt::format("{} has no position pattern here", n.op->name));
      last = pattern;
      continue;
    }
    if (!keeps_positions(p, n, v, stretched))
      return everything(v, fmt::format("{} is not known to keep positions", n.op->name));
  }
  AxisAdjacency a;
  for (std::int64_t d : v) a.axes.push_back(identity(d));
  if (last && !v.empty()) a.axes.back() = *last;
  return a;
}

}  // namespace

AxisAdjacency one_step_adjacency(const HiddenGroup& g, SnapFallback fallback,
                                 const std::set<ValueId>& stretched) {
  return fallback == SnapFallback::all_axes ? reference_walk(g, stretched)
                                            : AxisWalk(g).run();
}

std::set<ValueId> stretched_constants(const GraphIndex& index, const HiddenGroup& g) {
  const auto is_broadcast = [&](const Node& n) {
    if (n.inputs.size() != 1 || !has(n.op->traits, Trait::linear)) return false;
    const NodeTypes types = types_of(index.graph(), n);
    if (types.in[0].rank() == 0) return false;
    const InputFlow flow = positions_of(*n.op, {types.in, types.out, n.attrs}).flow[0][0];
    const auto fresh = [](const AxisFlow& a) { return a.flow == Flow::fresh; };
    const auto plain = [](const AxisFlow& a) {
      return a.flow == Flow::fresh || a.flow == Flow::same;
    };
    return flow.known && std::any_of(flow.axes.begin(), flow.axes.end(), fresh) &&
           std::all_of(flow.axes.begin(), flow.axes.end(), plain);
  };
  std::set<ValueId> out;
  for (ValueId v : g.transition_constants)
    if (const auto at = index.producer(v); at && is_broadcast(index.node(*at)))
      out.insert(v);
  return out;
}

SnapPattern group_snap_pattern(const HiddenGroup& g, const CompileOptions& options,
                               Diagnostics& diagnostics,
                               const std::set<ValueId>& stretched) {
  const SnapPattern s =
      snap_pattern(one_step_adjacency(g, options.snap_fallback, stretched), g.varshape(),
                   *options.sparse_n);
  if (s.conservative)
    diagnostics.note(
        {.kind = DiagnosticKind::snap_pattern_conservative,
         .level = DiagnosticLevel::warning,
         .message = fmt::format("hidden group {}: every position may reach every "
                                "other: {}",
                                g.index, s.reason),
         .hidden_paths = g.hidden_paths()});
  if (s.is_degenerate() && g.has_recurrence)
    diagnostics.note(
        {.kind = DiagnosticKind::snap_pattern_degenerate,
         .level = DiagnosticLevel::info,
         .message = fmt::format("hidden group {}: no position reaches another", g.index),
         .hidden_paths = g.hidden_paths()});
  const std::int64_t width = s.num_neighbour() * g.num_state();
  const std::int64_t elements = s.num_position() * width * width;
  BT_REQUIRE_KIND(
      elements <= options.snap_max_jacobian_elements, ErrorKind::not_supported,
      fmt::format("SnAp: group {} needs a widened Jacobian of {} elements (P={}, "
                  "K={}, S={}), more than {}{}",
                  g.index, elements, s.num_position(), s.num_neighbour(), g.num_state(),
                  options.snap_max_jacobian_elements,
                  s.reason.empty() ? "" : "; " + s.reason));
  return s;
}

}  // namespace braintrace
