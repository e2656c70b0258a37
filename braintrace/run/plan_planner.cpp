// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "braintrace/ir/evaluate.h"
#include "braintrace/run/plan_events_impl.h"
#include "braintrace/run/plan_planner_impl.h"

namespace braintrace::plan {
namespace {

Lowering lowering_of(const Graph& g, const Node& n) {
  if (!n.op->lower) return lowering::Evaluate{};
  const std::vector<Type> in = g.types_of(n.inputs), out = g.types_of(n.outputs);
  return n.op->lower({in, out, n.attrs});
}

}  // namespace

bool same_layout(const View& a, View b) {
  b.buffer = a.buffer;
  return same_place(a, b);
}

int Planner::add_buffer(Place place, std::int64_t bytes, int depth) {
  program_.buffers.push_back({.place = place, .bytes = bytes, .depth = depth});
  return static_cast<int>(program_.buffers.size()) - 1;
}

View Planner::add_packed(Place place, const Type& t, int depth) {
  const auto bytes = t.size() * static_cast<std::int64_t>(size_of(t.dtype));
  return packed_view(add_buffer(place, bytes, depth), t);
}

void Planner::read(const View& v, int time) {
  Buffer& b = buffer(v);
  b.first = std::min(b.first, time);
  b.last = std::max(b.last, time);
  b.last_read = std::max(b.last_read, time);
}

void Planner::write(const View& v, int time) {
  Buffer& b = buffer(v);
  b.first = std::min(b.first, time);
  b.last = std::max(b.last, time);
  b.first_write = std::min(b.first_write, time);
}

void Planner::align(const View& in, const View& out, int time) {
  if (same_layout(in, out)) aligned_.insert({in.buffer, out.buffer, time});
}

bool Planner::may_share(int in, int out) const {
  const Buffer& i = program_.buffers[static_cast<std::size_t>(in)];
  const Buffer& o = program_.buffers[static_cast<std::size_t>(out)];
  if (i.bytes != o.bytes) return false;
  if (i.last_read < o.first_write) return true;
  return i.last_read == o.first_write && aligned_.contains({in, out, o.first_write});
}

const View& Planner::view(const Scope& s, ValueId v) const {
  const std::optional<View>& found = s.views[v.index];
  BT_INVARIANT(found.has_value());
  return *found;
}

View Planner::place(Scope& s, ValueId v) {
  std::optional<View>& home = s.homes[v.index];
  if (!home) home = add_packed(Place::arena, s.g.type(v), s.depth);
  s.views[v.index] = home;
  return *home;
}

View Planner::place_packed(Scope& s, ValueId v) {
  std::optional<View>& home = s.homes[v.index];
  if (home && !is_packed(*home)) home = std::nullopt;
  return place(s, v);
}

void Planner::emit_copy(Scope& s, const View& from, const View& to, int time) {
  read(from, time);
  write(to, time);
  align(from, to, time);
  s.block.steps.push_back(
      {CopyStep{from, to, {size_of(to.dtype), to.shape, from.strides, to.strides}}});
}

bool Planner::comes_from_outside(const Scope& s, const View& v) {
  return s.outer && buffer(v).depth < s.depth &&
         std::find(s.written.begin(), s.written.end(), v.buffer) == s.written.end();
}

View Planner::packed(Scope& s, const View& v, int time) {
  if (is_packed(v)) return v;
  if (comes_from_outside(s, v)) return packed(*s.outer, v, s.begin);
  for (const auto& [from, to] : s.packs)
    if (same_place(from, v)) return to;
  const View copy = add_packed(Place::arena, v.type(), s.depth);
  emit_copy(s, v, copy, time);
  s.packs.emplace_back(v, copy);
  return copy;
}

// A value can be written where it is wanted when a step makes it; behind a reshape or
// transpose the step in front is asked.
void Planner::claim(Scope& s, ValueId v, const View& home) {
  const Node* n = s.producer[v.index];
  if (!n || s.homes[v.index]) return;
  const Lowering& l = s.lowered[static_cast<std::size_t>(n - s.g.nodes().data())];
  if (std::holds_alternative<lowering::Reshape>(l)) {
    if (const auto behind = reshaped(home, s.g.type(n->inputs[0]).shape))
      claim(s, n->inputs[0], *behind);
  } else if (const auto* t = std::get_if<lowering::Transpose>(&l)) {
    claim(s, n->inputs[0], transposed(home, inverse(t->permutation)));
  } else if (std::holds_alternative<lowering::Elementwise>(l) && is_window(s.g, *n, l)) {
    claim(s, n->inputs[0], home);
  } else if (!is_window(s.g, *n, l) && !std::holds_alternative<lowering::Constant>(l)) {
    s.homes[v.index] = home;
  }
}

void Planner::claim_homes(Scope& s, std::span<const View> outputs) {
  for (std::size_t i = outputs.size(); i-- > 0;)
    if (outputs[i].buffer >= 0) claim(s, s.g.outputs()[i], outputs[i]);
  for (std::size_t i = s.g.nodes().size(); i-- > 0;) {
    const auto* c = std::get_if<lowering::Concatenate>(&s.lowered[i]);
    if (!c) continue;
    const Node& n = s.g.nodes()[i];
    const View whole = place(s, n.outputs[0]);
    std::int64_t start = 0;
    for (ValueId v : n.inputs) {
      const std::int64_t size = s.g.type(v).shape[static_cast<std::size_t>(c->axis)];
      claim(s, v, part_of(whole, c->axis, start, size));
      start += size;
    }
  }
}

std::vector<Overwrite> Planner::overwrites(const Graph& g, std::span<const View> inputs,
                                           std::span<const View> outputs) const {
  std::vector<Overwrite> found;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (partners_.contains({inputs[i].buffer, outputs[o].buffer}))
        found.push_back({g.inputs()[i], g.outputs()[o]});
  return found;
}

Block Planner::plan(const Graph& g, std::span<const View> inputs,
                    std::span<const View> outputs, const Outer& outer) {
  Scope s{g,           outer.scope,   outer.scope ? outer.scope->depth + 1 : 0,
          outer.begin, outer.repeats, {},
          {}};
  s.producer.resize(g.num_values());
  s.views.resize(g.num_values());
  s.homes.resize(g.num_values());
  s.readers.resize(g.num_values());
  s.is_output.resize(g.num_values());
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& n = g.nodes()[i];
    for (ValueId v : n.outputs) s.producer[v.index] = &n;
    for (ValueId v : n.inputs) s.readers[v.index].push_back(i);
    s.lowered.push_back(lowering_of(g, n));
  }
  for (ValueId v : g.outputs()) s.is_output[v.index] = true;
  s.spiking = spiking_values(g, outer.spiking);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    s.views[g.inputs()[i].index] = inputs[i];
  for (const View& v : outputs) s.written.push_back(v.buffer);
  claim_homes(s, outputs);
  for (const Group& group : groups_of(g, s.lowered, overwrites(g, inputs, outputs))) {
    if (group.fused)
      plan_fused(s, group);
    else if (group.nodes.size() > 1)
      plan_products(s, group);
    else
      plan_node(s, group.nodes[0]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].buffer < 0) continue;
    const View& v = view(s, g.outputs()[i]);
    if (!same_place(v, outputs[i])) emit_copy(s, v, outputs[i], tick());
  }
  return std::move(s.block);
}

void Planner::plan_node(Scope& s, std::size_t index) {
  const Node& n = s.g.nodes()[index];
  const Lowering& l = s.lowered[index];
  if (is_window(s.g, n, l)) return plan_view(s, n, l);
  if (std::holds_alternative<lowering::Constant>(l)) return plan_constant(s, n);
  if (const auto* c = std::get_if<lowering::Concatenate>(&l))
    return plan_concatenate(s, n, c->axis);
  if (const auto* pad = std::get_if<lowering::Pad>(&l)) return plan_pad(s, n, *pad);
  if (const auto* scan = std::get_if<lowering::Scan>(&l)) return plan_scan(s, n, *scan);
  if (const auto* loop = std::get_if<lowering::While>(&l)) return plan_while(s, n, *loop);
  if (const auto* cond = std::get_if<lowering::Cond>(&l)) return plan_cond(s, n, *cond);
  if (const auto* gemm = std::get_if<lowering::Gemm>(&l)) return plan_gemm(s, n, *gemm);
  if (const auto* conv = std::get_if<lowering::Conv>(&l))
    return plan_conv(s, n, conv->geometry);
  if (!plan_kernel(s, n, l)) plan_eval(s, n);
}

void Planner::plan_view(Scope& s, const Node& n, const Lowering& l) {
  const Type& out = s.g.type(n.outputs[0]);
  const View& in = view(s, n.inputs[0]);
  std::optional<View> v = in;  // copies and conversions to the same type
  if (const auto* t = std::get_if<lowering::Transpose>(&l)) {
    v = transposed(in, t->permutation);
  } else if (const auto* c = std::get_if<lowering::Slice>(&l)) {
    v = sliced(in, c->start, out.shape, c->step);
  } else if (const auto* b = std::get_if<lowering::Broadcast>(&l)) {
    v = stretched(in, out.shape, b->in_axes);
  } else if (std::holds_alternative<lowering::Reshape>(l)) {
    v = reshaped(in, out.shape);
    if (!v) v = reshaped(packed(s, in, tick()), out.shape);
    BT_INVARIANT(v.has_value());
  }
  s.views[n.outputs[0].index] = v;
}

void Planner::plan_constant(Scope& s, const Node& n) {
  const Array value = eval_op(*n.op, {}, n.attrs)[0].contiguous();
  View v = add_packed(Place::constant, type_of(value), 0);
  buffer(v).constant = value;
  s.views[n.outputs[0].index] = v;
}

void Planner::plan_concatenate(Scope& s, const Node& n, std::int64_t axis) {
  const View whole = place(s, n.outputs[0]);
  std::int64_t start = 0;
  for (ValueId v : n.inputs) {
    const View& from = view(s, v);
    const std::int64_t size = from.shape[static_cast<std::size_t>(axis)];
    const View to = part_of(whole, axis, start, size);
    if (!same_place(from, to)) emit_copy(s, from, to, tick());
    start += size;
  }
}

void Planner::plan_pad(Scope& s, const Node& n, const lowering::Pad& l) {
  const View from = view(s, n.inputs[0]), whole = place_packed(s, n.outputs[0]);
  const int time = tick();
  write(whole, time);
  s.block.steps.push_back({FillStep{whole, full({}, l.value, whole.dtype)}});
  if (from.size() == 0) return;
  Ints step = l.interior;
  for (std::int64_t& gap : step) ++gap;
  emit_copy(s, from, sliced(whole, l.low, from.shape, step), tick());
}

void Planner::plan_eval(Scope& s, const Node& n) {
  EvalStep step{n.op, n.attrs, {}, {}, {}, {}, std::make_shared<int>(0)};
  for (ValueId v : n.inputs) step.in.push_back(packed(s, view(s, v), tick()));
  const int time = tick();
  for (const View& v : step.in) {
    read(v, time);
    step.in_arrays.push_back(Array::borrowed(v.dtype, v.shape, nullptr, step.reader));
  }
  for (ValueId id : n.outputs) {
    const View v = place_packed(s, id);
    write(v, time);
    step.out.push_back(v);
    step.out_arrays.push_back(
        Array::borrowed(v.dtype, v.shape, nullptr, std::make_shared<int>(0)));
  }
  s.block.steps.push_back({std::move(step)});
}

}  // namespace braintrace::plan
