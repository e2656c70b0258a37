// SPDX-License-Identifier: Apache-2.0
// Nodes that have a kernel: fused chains, products, reductions, convolutions, picks.
#include <algorithm>
#include <map>

#include "braintrace/run/plan_planner_impl.h"

namespace braintrace::plan {
namespace {

std::optional<MatrixStrides> as_matrices(const View& v, const Ints& batch,
                                         const Ints& rows, const Ints& cols) {
  const auto b = as_one(v, batch), r = as_one(v, rows), c = as_one(v, cols);
  if (!b || !r || !c) return std::nullopt;
  if (r->stride != 1 && c->stride != 1 && r->size > 1 && c->size > 1) return std::nullopt;
  return MatrixStrides{r->stride, c->stride, b->stride};
}

// From here on counting the zeros of one operand is cheap beside the product.
constexpr std::int64_t kEventColumns = 16;

std::int64_t product(const Shape& shape, const Ints& axes) {
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= shape[static_cast<std::size_t>(a)];
  return n;
}

Ints joined(Ints a, const Ints& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Ints others(std::size_t rank, const Ints& taken) {
  Ints rest;
  for (std::int64_t a = 0; a < static_cast<std::int64_t>(rank); ++a)
    if (std::find(taken.begin(), taken.end(), a) == taken.end()) rest.push_back(a);
  return rest;
}

Ints counted(std::int64_t first, std::size_t n) {
  Ints list = iota_ints(static_cast<std::int64_t>(n));
  for (std::int64_t& a : list) a += first;
  return list;
}

// Pairs of contracted axes may come in any order: that of the left operand's memory.
void sort_pairs(Ints& left, Ints& right) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::size_t i = 0; i < left.size(); ++i) pairs.emplace_back(left[i], right[i]);
  std::sort(pairs.begin(), pairs.end());
  for (std::size_t i = 0; i < pairs.size(); ++i) std::tie(left[i], right[i]) = pairs[i];
}

}  // namespace

// A small array that is read many times, and across its rows, is turned once instead.
View Planner::along_rows(Scope& s, const View& v) {
  constexpr std::int64_t kTimesRead = 8;
  View own = v;  // without the axes it is repeated along
  std::int64_t inner_stride = 1;
  for (std::size_t a = 0; a < v.shape.size(); ++a) {
    if (v.strides[a] == 0) own.shape[a] = 1;
    if (v.shape[a] > 1) inner_stride = v.strides[a];
  }
  if (inner_stride == 0 || inner_stride == 1 || own.size() * kTimesRead > v.size())
    return v;
  View rows = packed(s, own, tick());
  for (std::size_t a = 0; a < v.shape.size(); ++a)
    if (own.shape[a] == 1) rows.strides[a] = 0;
  rows.shape = v.shape;
  return rows;
}

// The chain of a group: its inputs and steps. Numbers the values.
FusedChain Planner::chain_of(Scope& s, const Group& group,
                             const std::vector<bool>& inside) {
  FusedChain c;
  c.spec.loop = s.g.type(s.g.nodes()[group.nodes[0]].outputs[0]).shape;
  for (std::size_t n : group.nodes)
    for (ValueId v : s.g.nodes()[n].inputs) {
      const Node* p = s.producer[v.index];
      if (p && inside[static_cast<std::size_t>(p - s.g.nodes().data())]) continue;
      if (c.number.contains(v)) continue;
      // Values that are the same memory are one input: an output may overwrite it.
      const auto known = std::find_if(c.in.begin(), c.in.end(), [&](const View& i) {
        return same_place(i, view(s, v));
      });
      c.number[v] = static_cast<int>(known - c.in.begin());
      if (known != c.in.end()) continue;
      c.in.push_back(along_rows(s, view(s, v)));
      c.spec.inputs.push_back({c.in.back().dtype, c.in.back().strides});
    }
  for (std::size_t n : group.nodes) {
    const Node& node = s.g.nodes()[n];
    TileStep t{std::get<lowering::Elementwise>(s.lowered[n]).op,
               s.g.type(node.outputs[0]).dtype,
               {}};
    for (ValueId v : node.inputs) t.operands.push_back(c.number.at(v));
    c.number[node.outputs[0]] =
        static_cast<int>(c.spec.inputs.size() + c.spec.steps.size());
    c.spec.steps.push_back(std::move(t));
  }
  return c;
}

namespace {

std::variant<TileProgram, FusedSum> program_of(const FusedSumSpec& spec) {
  if (!spec.summed.empty()) return FusedSum(spec);
  if (auto loop = FusedSum::in_loop(spec.chain)) return std::move(*loop);
  return TileProgram(spec.chain);
}

}  // namespace

void Planner::plan_fused(Scope& s, const Group& group) {
  std::vector<bool> inside(s.g.nodes().size(), false);
  for (std::size_t n : group.nodes) inside[n] = true;
  FusedChain c = chain_of(s, group, inside);
  for (std::size_t n : group.sums) inside[n] = true;
  std::vector<View> out;
  const int time = tick();
  for (std::size_t n : group.nodes) {
    const ValueId v = s.g.nodes()[n].outputs[0];
    if (!used_outside(s, v, inside)) continue;
    out.push_back(place(s, v));
    const int twin = align_inputs(c.in, out.back(), time);
    const View& lies = twin < 0 ? out.back() : c.in[static_cast<std::size_t>(twin)];
    c.spec.outputs.push_back({c.number.at(v), lies.strides, twin});
    write(out.back(), time);
  }
  FusedSumSpec sums{.num_lead = group.num_lead};
  for (std::size_t n : group.sums) {
    const Node& node = s.g.nodes()[n];
    out.push_back(place_packed(s, node.outputs[0]));
    sums.summed.push_back(c.number.at(node.inputs[0]));
    write(out.back(), time);
  }
  for (const View& v : c.in) read(v, time);
  sums.chain = std::move(c.spec);
  FusedStep step{sums.chain, program_of(sums), std::move(c.in), std::move(out), {}, {}};
  step.in_memory.resize(step.in.size());
  step.out_memory.resize(step.out.size());
  s.block.steps.push_back({std::move(step)});
}

// Could the two come to share memory of the arena?
bool Planner::may_reuse(const View& in, const View& out) const {
  const Buffer& i = program_.buffers[static_cast<std::size_t>(in.buffer)];
  const Buffer& o = program_.buffers[static_cast<std::size_t>(out.buffer)];
  return i.place == Place::arena && o.place == Place::arena && i.bytes == o.bytes &&
         i.depth == o.depth && o.last < 0;
}

bool Planner::is_taken(int in, int time) const {
  for (auto a = aligned_.lower_bound({in, 0, 0}); a != aligned_.end(); ++a) {
    if (std::get<0>(*a) != in) return false;
    if (std::get<2>(*a) == time) return true;
  }
  return false;
}

// The input whose memory `out` may come to take, -1 if there is none.
int Planner::align_inputs(const std::vector<View>& in, const View& out, int time) {
  int found = -1;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool partner = partners_.contains({in[i].buffer, out.buffer});
    if (!partner && (found >= 0 || !may_reuse(in[i], out))) continue;
    const bool alone = std::all_of(in.begin(), in.end(), [&](const View& v) {
      return v.buffer != in[i].buffer || same_layout(v, out);
    });
    if (alone && !is_taken(in[i].buffer, time)) found = static_cast<int>(i);
    if (partner) break;
  }
  if (found >= 0) align(in[static_cast<std::size_t>(found)], out, time);
  return found;
}

void Planner::reuse_memory() {
  for (const auto& [in, out, time] : aligned_) {
    Buffer& i = program_.buffers[static_cast<std::size_t>(in)];
    Buffer& o = program_.buffers[static_cast<std::size_t>(out)];
    const bool both = i.place == Place::arena && o.place == Place::arena;
    if (both && i.last == time && o.first == time && i.bytes == o.bytes && in != out)
      o.takes_over = in;
  }
}

bool Planner::used_outside(const Scope& s, ValueId v,
                           const std::vector<bool>& inside) const {
  const auto& readers = s.readers[v.index];
  return s.is_output[v.index] || std::any_of(readers.begin(), readers.end(),
                                             [&](std::size_t n) { return !inside[n]; });
}

// The operand as it lies in memory, or packed as [batch, rows, cols].
GemmOperand Planner::gemm_operand(Scope& s, const View& v, const Ints& batch,
                                  const Ints& rows, const Ints& cols) {
  if (const auto strides = as_matrices(v, batch, rows, cols)) return {v, *strides};
  const View matrices =
      packed(s, transposed(v, joined(joined(batch, rows), cols)), tick());
  const std::int64_t m = product(v.shape, rows), n = product(v.shape, cols);
  return {matrices, {n, 1, m * n}};
}

// Each product on top of the one before it, the first perhaps on an input, where their
// addition wants its result.
void Planner::plan_products(Scope& s, const Group& group) {
  const View sum = place_packed(s, s.g.nodes()[group.nodes.back()].outputs[0]);
  bool added = false;
  for (std::size_t index : group.nodes)
    for (ValueId v : s.g.nodes()[index].inputs) {
      if (s.producer[v.index] || is_product(s.lowered[index])) continue;
      emit_copy(s, view(s, v), sum, tick());
      added = true;
    }
  for (std::size_t index : group.nodes) {
    const Lowering& l = s.lowered[index];
    if (!is_product(l)) continue;
    const Node& n = s.g.nodes()[index];
    s.homes[n.outputs[0].index] = sum;
    if (const auto* gemm = std::get_if<lowering::Gemm>(&l))
      plan_gemm(s, n, *gemm, added ? 1 : 0);
    else
      plan_kernel(s, n, l, added);
    added = true;
  }
}

void Planner::plan_gemm(Scope& s, const Node& n, lowering::Gemm l, double beta) {
  sort_pairs(l.lhs_contract, l.rhs_contract);
  const View lhs = view(s, n.inputs[0]), rhs = view(s, n.inputs[1]);
  const Ints left = others(lhs.shape.size(), joined(l.lhs_batch, l.lhs_contract));
  const Ints right = others(rhs.shape.size(), joined(l.rhs_batch, l.rhs_contract));
  const GemmOperand a = gemm_operand(s, lhs, l.lhs_batch, left, l.lhs_contract);
  const GemmOperand b = gemm_operand(s, rhs, l.rhs_batch, l.rhs_contract, right);
  const std::size_t nb = l.lhs_batch.size(), nl = left.size();
  const auto matrices = [&](const View& v) {
    return as_matrices(v, counted(0, nb), counted(static_cast<std::int64_t>(nb), nl),
                       counted(static_cast<std::int64_t>(nb + nl), right.size()));
  };
  View out = place(s, n.outputs[0]);
  if (!matrices(out)) out = place_packed(s, n.outputs[0]);
  GemmStep step{.spec = {.dtype = out.dtype,
                         .m = product(lhs.shape, left),
                         .n = product(rhs.shape, right),
                         .k = product(lhs.shape, l.lhs_contract),
                         .batch = product(lhs.shape, l.lhs_batch),
                         .a = a.strides,
                         .b = b.strides,
                         .c = *matrices(out),
                         .beta = beta},
                .a = a.view,
                .b = b.view,
                .c = out};
  if (n.inputs.size() > 2) step.bias = packed(s, view(s, n.inputs[2]), tick());
  step.events = s.spiking[n.inputs[0].index] && step.spec.n >= kEventColumns &&
                step.spec.b.col == 1 && step.spec.c.col == 1;
  pack_invariant(s, n.inputs[1], step);
  const int time = tick();
  read(step.a, time);
  read(step.b, time);
  if (step.bias) read(*step.bias, time);
  write(out, time);
  s.block.steps.push_back({std::move(step)});
}

namespace {

// x split around one axis, for picks along it.
PickSpec picks_along(const View& x, std::int64_t axis, std::int64_t picks) {
  PickSpec spec{.dtype = x.dtype, .picks = picks};
  for (std::int64_t a = 0; a < static_cast<std::int64_t>(x.shape.size()); ++a) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(a)];
    if (a < axis) spec.outer *= size;
    if (a == axis) spec.n = size;
    if (a > axis) spec.inner *= size;
  }
  return spec;
}

std::int64_t lead_of(const View& v) {
  return num_elements(std::span(v.shape).first(v.shape.size() - 1));
}

std::optional<PackedKernel> kernel_of(const std::vector<View>& in, const Type& out,
                                      const Lowering& l) {
  if (const auto* r = std::get_if<lowering::Reduce>(&l))
    return ReduceKernel(r->kind, in[0].dtype, in[0].shape, r->axes);
  if (const auto* g = std::get_if<lowering::Gather>(&l)) {
    GatherKernel kernel{picks_along(in[0], g->axis, in[1].size())};
    kernel.spec.indices_of = g->indices_of;
    return kernel;
  }
  if (const auto* a = std::get_if<lowering::ScatterAdd>(&l))
    return ScatterKernel{picks_along(in[0], a->axis, in[1].size())};
  if (const auto* s = std::get_if<lowering::Sparse>(&l))
    return SparseKernel(out.dtype, lead_of(in[0]), in[0].shape.back(), out.shape.back(),
                        s->rows, s->cols);
  if (const auto* s = std::get_if<lowering::SparseOuter>(&l))
    return SparseOuterKernel(out.dtype, lead_of(in[0]), in[0].shape.back(),
                             in[1].shape.back(), s->rows, s->cols);
  return std::nullopt;
}

}  // namespace

// False when there is none for the node.
bool Planner::plan_kernel(Scope& s, const Node& n, const Lowering& l, bool added) {
  std::vector<View> in;
  for (ValueId v : n.inputs) in.push_back(view(s, v));
  std::optional<PackedKernel> kernel = kernel_of(in, s.g.type(n.outputs[0]), l);
  if (!kernel) return false;
  if (added) std::get<SparseOuterKernel>(*kernel).add_to_result();
  KernelStep step{std::move(*kernel), {}, {}};
  for (const View& v : in) step.in.push_back(packed(s, v, tick()));
  step.out = place_packed(s, n.outputs[0]);
  const int time = tick();
  for (const View& v : step.in) read(v, time);
  write(step.out, time);
  s.block.steps.push_back({std::move(step)});
  return true;
}

}  // namespace braintrace::plan
