// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/position_flow.h"

#include <algorithm>

#include "braintrace/etrace/region_flow.h"
#include "braintrace/ir/lowering.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

bool is_reshape(const Signature& s, const OpDef& op) {
  return op.lower && std::holds_alternative<lowering::Reshape>(op.lower(s));
}

// Every position axis larger than 1 must be present, in order.
bool complete(const std::vector<int>& axes, const Shape& positions) {
  std::vector<int> present;
  for (int a : axes)
    if (a >= 0) present.push_back(a);
  if (!std::is_sorted(present.begin(), present.end())) return false;
  if (std::adjacent_find(present.begin(), present.end()) != present.end()) return false;
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const bool there =
        std::find(present.begin(), present.end(), static_cast<int>(k)) != present.end();
    if (!there && positions[k] != 1) return false;
  }
  return true;
}

// Does row-major order of the value equal row-major order of the positions?
bool in_row_major(const Alignment& a, const Shape& shape) {
  if (a.flat) return true;
  for (std::size_t i = 0; i < a.axes.size(); ++i)
    if (a.axes[i] < 0 && shape[i] != 1) return false;
  return true;
}

Alignment identity_alignment(const Shape& shape, const Shape& positions) {
  if (shape != positions) return {.flat = true, .axes = {}};
  Alignment a;
  for (std::size_t k = 0; k < positions.size(); ++k)
    a.axes.push_back(static_cast<int>(k));
  return a;
}

std::optional<Alignment> through_axes(const InputFlow& f, const Alignment& in,
                                      const Shape& in_shape, const Shape& positions) {
  Alignment out;
  std::vector<bool> used(in.axes.size(), false);
  for (const AxisFlow& a : f.axes) {
    if (a.flow == Flow::fresh || a.in_axis < 0) {
      out.axes.push_back(-1);
      continue;
    }
    const auto i = static_cast<std::size_t>(a.in_axis);
    used[i] = true;
    const bool moved = a.flow != Flow::same && in_shape[i] != 1;
    if (in.axes[i] >= 0 && moved) return std::nullopt;
    out.axes.push_back(in.axes[i]);
  }
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i] && in.axes[i] >= 0 && in_shape[i] != 1) return std::nullopt;
  if (!complete(out.axes, positions)) return std::nullopt;
  return out;
}

// An axis of one position says nothing: the alignment without it, so that a unit that is
// summed over its only position still stands where it stood.
Alignment without_single_positions(Alignment a, const Shape& positions) {
  for (int& axis : a.axes)
    if (axis >= 0 && positions[static_cast<std::size_t>(axis)] == 1) axis = -1;
  return a;
}

class Walk {
 public:
  Walk(const GraphIndex& index, const Shape& positions, const FlowOptions& options,
       const StopAt& stop_at)
      : index_(index), positions_(positions), options_(options), stop_at_(stop_at) {}

  Influence run(const std::map<ValueId, Alignment>& sources) {
    for (const auto& [v, alignment] : sources) {
      out_.reached.emplace(v, without_single_positions(alignment, positions_));
      for (const Use& u : index_.uses(v)) pending_.insert(u.node);
    }
    while (!pending_.empty()) {
      const std::size_t i = *pending_.begin();
      pending_.erase(pending_.begin());
      visit(i);
    }
    return std::move(out_);
  }

 private:
  void visit(std::size_t i) {
    const Node& n = index_.node(i);
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      const auto it = out_.reached.find(n.inputs[k]);
      if (it == out_.reached.end() || !passes_tangent(index_, {i, k})) continue;
      const Alignment in = it->second;
      follow(i, k, in);
    }
  }

  void follow(std::size_t i, std::size_t input, const Alignment& in) {
    const Node& n = index_.node(i);
    const Graph& g = index_.graph();
    const Use use{i, input};
    if (is_structural_etp(n) && !options_.cross_etp) return cut(use);
    const bool product = (is_product(g, n) && !n.op->etp) || region_mixes(n, input);
    if (options_.mixing_is_kept && product && !options_.cross_products) return cut(use);
    bool any = false;
    for (std::size_t o = 0; o < n.outputs.size(); ++o) {
      if (!is_float(g.type(n.outputs[o]).dtype)) continue;
      std::optional<Alignment> a = through(g, n, input, o, in, positions_);
      if (!a && options_.mixing_is_kept) a = Alignment{.flat = true, .axes = {}};
      if (a && merge(n.outputs[o], *a)) any = true;
    }
    if (any) {
      out_.kept.insert(use);
    } else {
      cut(use);
    }
  }

  // False when the value already stands on other positions.
  bool merge(ValueId v, const Alignment& full) {
    const Alignment a = without_single_positions(full, positions_);
    const auto [it, fresh] = out_.reached.emplace(v, a);
    if (fresh && (!stop_at_ || !stop_at_(v)))
      for (const Use& u : index_.uses(v)) pending_.insert(u.node);
    return options_.mixing_is_kept || it->second == a;
  }

  void cut(Use u) { out_.cuts.push_back(u); }

  const GraphIndex& index_;
  const Shape& positions_;
  const FlowOptions& options_;
  const StopAt& stop_at_;
  std::set<std::size_t> pending_;  // in program order: producers come first
  Influence out_;
};

}  // namespace

Alignment source_alignment(const Shape& positions, std::int64_t rank) {
  Alignment a;
  for (std::int64_t k = 0; k < rank; ++k)
    a.axes.push_back(k < static_cast<std::int64_t>(positions.size()) ? static_cast<int>(k)
                                                                     : -1);
  return a;
}

bool stands_on(const Alignment& a, const Shape& value_shape, const Shape& positions) {
  if (a.flat) return num_elements(value_shape) == num_elements(positions);
  Shape seen;
  std::vector<int> axes;
  for (std::size_t i = 0; i < a.axes.size(); ++i) {
    if (a.axes[i] < 0) continue;
    axes.push_back(a.axes[i]);
    seen.push_back(value_shape[i]);
  }
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (seen[i] != positions[static_cast<std::size_t>(axes[i])]) return false;
  return complete(a.axes, positions);
}

std::optional<Alignment> through(const Graph& g, const Node& n, std::size_t input,
                                 std::size_t output, const Alignment& in,
                                 const Shape& positions) {
  if (as_scan(n) || as_while(n) || as_cond(n))
    return through_region(g, n, input, output, in, positions);
  const NodeTypes types = types_of(g, n);
  const Signature s{types.in, types.out, n.attrs};
  const Shape& from = types.in[input].shape;
  const Shape& to = types.out[output].shape;
  if (is_reshape(s, *n.op) && in_row_major(in, from)) {
    const Alignment out = identity_alignment(to, positions);
    // Adding or dropping axes of size 1 keeps the axes known.
    if (!out.flat) return out;
    const InputFlow f = positions_of(*n.op, s).flow[input][output];
    if (const auto kept = in.flat ? std::nullopt : through_axes(f, in, from, positions))
      return kept;
    return out;
  }
  const InputFlow f = positions_of(*n.op, s).flow[input][output];
  if (!f.reaches || !f.known) return std::nullopt;
  if (in.flat)
    return is_identity(f, types.in[input].rank()) ? std::optional(in) : std::nullopt;
  return through_axes(f, in, from, positions);
}

Influence influence_of(const GraphIndex& index, std::span<const ValueId> sources,
                       const Shape& positions, const FlowOptions& options,
                       const StopAt& stop_at) {
  std::map<ValueId, Alignment> aligned;
  for (ValueId v : sources)
    aligned[v] = source_alignment(positions, index.graph().type(v).rank());
  return influence_from(index, aligned, positions, options, stop_at);
}

Influence influence_from(const GraphIndex& index,
                         const std::map<ValueId, Alignment>& sources,
                         const Shape& positions, const FlowOptions& options,
                         const StopAt& stop_at) {
  return Walk(index, positions, options, stop_at).run(sources);
}

bool is_product(const Graph& g, const Node& n) {
  if (!n.op->lower) return false;
  const NodeTypes types = types_of(g, n);
  const Lowering l = n.op->lower({types.in, types.out, n.attrs});
  return std::holds_alternative<lowering::Gemm>(l) ||
         std::holds_alternative<lowering::Conv>(l) ||
         std::holds_alternative<lowering::Sparse>(l);
}

}  // namespace braintrace
