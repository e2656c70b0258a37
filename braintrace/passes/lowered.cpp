// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "braintrace/ir/constant.h"
#include "braintrace/passes/lowered_impl.h"

namespace braintrace {

LoweredGraph::LoweredGraph(const Graph& g)
    : g_(g), producers_(g.num_values(), nullptr), uses_(g.num_values(), 0) {
  lowerings_.reserve(g.nodes().size());
  for (const Node& n : g.nodes()) {
    for (ValueId v : n.inputs) ++uses_[v.index];
    for (ValueId v : n.outputs) producers_[v.index] = &n;
    const std::vector<Type> in = g.types_of(n.inputs), out = g.types_of(n.outputs);
    lowerings_.push_back(n.op->lower ? n.op->lower({in, out, n.attrs})
                                     : lowering::Evaluate{});
  }
  for (ValueId v : g.outputs()) ++uses_[v.index];
}

bool is_micro(const Lowering& l, MicroOp op) {
  const auto* e = std::get_if<lowering::Elementwise>(&l);
  return e && e->op == op;
}

bool is_sum(const Lowering& l) {
  const auto* r = std::get_if<lowering::Reduce>(&l);
  return r && r->kind == ReduceKind::sum;
}

bool is_product(const LoweredGraph& g, const Node& n) {
  const Lowering& l = g.lowering(n);
  return n.inputs.size() == 2 && (std::holds_alternative<lowering::Gemm>(l) ||
                                  std::holds_alternative<lowering::Conv>(l) ||
                                  std::holds_alternative<lowering::SparseOuter>(l));
}

const lowering::Gemm* plain_gemm(const LoweredGraph& g, const Node& n) {
  return n.inputs.size() == 2 ? std::get_if<lowering::Gemm>(&g.lowering(n)) : nullptr;
}

// Compares bits, and stops at the first difference.
std::optional<Array> splat_of(const Node& n) {
  const Array* a = literal(n);
  if (!a || a->size() < 2) return std::nullopt;
  const Array packed = a->contiguous();
  const std::size_t element = size_of(packed.dtype());
  const auto* bytes = static_cast<const std::byte*>(packed.raw());
  if (std::memcmp(bytes, bytes + element, packed.num_bytes() - element) != 0)
    return std::nullopt;
  const Ints zero(packed.shape().size(), 0), one(packed.shape().size(), 1);
  return packed.sliced(zero, one, one).reshaped({});
}

std::optional<Ints> view_axes(const LoweredGraph& g, const Node& n) {
  const Lowering& l = g.lowering(n);
  const bool moves = std::holds_alternative<lowering::Broadcast>(l) ||
                     std::holds_alternative<lowering::Reshape>(l) ||
                     std::holds_alternative<lowering::Transpose>(l);
  if (!moves) return std::nullopt;
  const std::vector<Type> in = g.graph().types_of(n.inputs);
  const std::vector<Type> out = g.graph().types_of(n.outputs);
  const InputFlow flow = positions_of(*n.op, {in, out, n.attrs}).flow[0][0];
  if (!flow.reaches || !flow.known) return std::nullopt;
  Ints axes(in[0].shape.size(), -1);
  for (std::size_t o = 0; o < flow.axes.size(); ++o) {
    const AxisFlow& f = flow.axes[o];
    if (f.flow == Flow::fresh) continue;
    if (f.flow != Flow::same) return std::nullopt;
    axes[static_cast<std::size_t>(f.in_axis)] = static_cast<std::int64_t>(o);
  }
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] < 0 && in[0].shape[i] != 1) return std::nullopt;
  return axes;
}

}  // namespace braintrace
