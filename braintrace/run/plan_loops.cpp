// SPDX-License-Identifier: Apache-2.0
// Loops and branches: their bodies become blocks of the same plan. What a body reads from
// outside is read where it is; steps of stacked values are windows that walk.
#include <algorithm>

#include "braintrace/ir/graph.h"
#include "braintrace/run/plan_events_impl.h"
#include "braintrace/run/plan_planner_impl.h"

namespace braintrace::plan {
namespace {

std::int64_t bytes_of(const View& v) {
  return v.size() * static_cast<std::int64_t>(size_of(v.dtype));
}

// The slot steps along axis 0.
Walk walk_of(int slot, const View& stacked) {
  const auto element = static_cast<std::int64_t>(size_of(stacked.dtype));
  return {slot, stacked, stacked.strides[0] * element};
}

View nowhere() { return {}; }

}  // namespace

// Slots for one carried value; buffers for its way are chosen when the body is planned.
Carry Planner::add_carry(Scope& s, ValueId init, ValueId result) {
  Carry c;
  c.init = packed(s, view(s, init), tick());
  c.result = place_packed(s, result);
  c.now = add_packed(Place::slot, c.init.type(), s.depth + 1).buffer;
  c.next = add_packed(Place::slot, c.init.type(), s.depth + 1).buffer;
  c.bytes = bytes_of(c.init);
  add_partners(c.now, c.next);
  return c;
}

// The carried value lives in its result; a second buffer takes turns with it when the
// body writes the new value before it has read the old one for the last time.
void Planner::settle_carry(Carry& c, int begin, int end) {
  read(c.init, begin);
  read(c.init, end);
  write(c.result, begin);
  write(c.result, end);
  if (c.stacked >= 0 || c.entered >= 0 || may_share(c.now, c.next)) return;
  const int depth = buffer(c.result).depth;
  const View spare = add_packed(Place::arena, c.result.type(), depth);
  write(spare, begin);
  write(spare, end);
  c.spare = spare.buffer;
}

// What the body touches outside of it lives as long as the loop runs.
void Planner::extend_over_loop(const Scope& s, int begin, int end) {
  for (Buffer& b : program_.buffers) {
    if (b.depth > s.depth || b.last < begin) continue;
    if (b.last_read >= begin) b.last_read = end;
    if (b.first_write > begin && b.first_write != kNever) b.first_write = begin;
    b.first = std::min(b.first, begin);
    b.last = end;
  }
}

// Parts of a body run at different turns: no buffer of its own may go on with another's
// memory.
void Planner::keep_apart(const Scope& s, int begin, int end) {
  for (Buffer& b : program_.buffers) {
    if (b.depth <= s.depth || b.last < begin) continue;
    b.first = std::min(b.first, begin);
    b.last = end;
  }
}

void Planner::plan_scan(Scope& s, const Node& n, const lowering::Scan& l) {
  const Graph& body = *l.body;
  ScanStep step{.length = l.length, .reverse = l.reverse};
  for (std::size_t i = 0; i < l.num_carry; ++i)
    step.carry.push_back(add_carry(s, n.inputs[l.num_consts + i], n.outputs[i]));
  std::vector<View> in;
  for (std::size_t i = 0; i < l.num_consts; ++i) in.push_back(view(s, n.inputs[i]));
  for (const Carry& c : step.carry) in.push_back(packed_view(c.now, c.init.type()));
  for (std::size_t i = l.num_consts + l.num_carry; i < n.inputs.size(); ++i) {
    const View& xs = view(s, n.inputs[i]);
    View x = step_of(xs);
    x.offset = 0;
    x.buffer = add_buffer(Place::slot, bytes_of(x), s.depth + 1);
    in.push_back(x);
    step.xs.push_back(walk_of(x.buffer, xs));
  }
  std::vector<View> out;
  for (const Carry& c : step.carry) out.push_back(packed_view(c.next, c.init.type()));
  for (std::size_t j = l.num_carry; j < n.outputs.size(); ++j) {
    const View ys = place_packed(s, n.outputs[j]);
    View y = step_of(ys);
    y.offset = 0;
    y.buffer = add_buffer(Place::slot, bytes_of(y), s.depth + 1);
    out.push_back(y);
    step.ys.push_back(walk_of(y.buffer, ys));
    const int number = static_cast<int>(j - l.num_carry);
    for (std::size_t i = 0; i < l.num_carry; ++i) {
      Carry& c = step.carry[i];
      if (c.stacked >= 0 || c.entered >= 0) continue;
      if (body.outputs()[i] == body.outputs()[j]) {
        c.stacked = number;
        out[i] = nowhere();
      } else if (body.inputs()[l.num_consts + i] == body.outputs()[j]) {
        c.entered = number;
        out.back() = nowhere();
      }
    }
  }
  std::vector<bool> spiking;
  for (ValueId v : n.inputs) spiking.push_back(s.spiking[v.index]);
  const int begin = tick();
  step.body = std::make_unique<Block>(
      plan(body, in, out, {&s, begin, true, spiking_in_body(l, spiking)}));
  const int end = tick();
  step.sliced = sliced_body(*step.body, step.carry, step.length);
  if (step.sliced) keep_apart(s, begin, end);
  for (Carry& c : step.carry) settle_carry(c, begin, end);
  for (const Walk& w : step.xs) {
    read(w.stacked, begin);
    read(w.stacked, end);
  }
  for (const Walk& w : step.ys) {
    write(w.stacked, begin);
    write(w.stacked, end);
  }
  extend_over_loop(s, begin, end);
  s.block.steps.push_back({std::move(step)});
}

void Planner::plan_while(Scope& s, const Node& n, const lowering::While& l) {
  WhileStep step;
  const std::size_t first_carry = l.num_condition_consts + l.num_body_consts;
  std::vector<View> condition_in, body_in, out;
  for (std::size_t i = 0; i < first_carry; ++i)
    (i < l.num_condition_consts ? condition_in : body_in).push_back(view(s, n.inputs[i]));
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    const Carry c = add_carry(s, n.inputs[first_carry + i], n.outputs[i]);
    condition_in.push_back(packed_view(c.now, c.init.type()));
    body_in.push_back(condition_in.back());
    out.push_back(packed_view(c.next, c.init.type()));
    step.carry.push_back(c);
  }
  step.predicate = add_packed(Place::arena, {DType::boolean, {}}, s.depth);
  const int begin = tick();
  write(step.predicate, begin);
  step.condition = std::make_unique<Block>(
      plan(*l.condition, condition_in, std::span(&step.predicate, 1), {&s, begin, true}));
  step.body = std::make_unique<Block>(plan(*l.body, body_in, out, {&s, begin, true}));
  const int end = tick();
  read(step.predicate, end);
  for (Carry& c : step.carry) settle_carry(c, begin, end);
  extend_over_loop(s, begin, end);
  s.block.steps.push_back({std::move(step)});
}

void Planner::plan_cond(Scope& s, const Node& n, const lowering::Cond& l) {
  CondStep step;
  step.predicate = packed(s, view(s, n.inputs[0]), tick());
  std::vector<View> in, out;
  for (std::size_t i = 1; i < n.inputs.size(); ++i) in.push_back(view(s, n.inputs[i]));
  for (ValueId v : n.outputs) out.push_back(place_packed(s, v));
  const int begin = tick();
  read(step.predicate, begin);
  step.if_true = std::make_unique<Block>(plan(*l.if_true, in, out, {&s, begin}));
  step.if_false = std::make_unique<Block>(plan(*l.if_false, in, out, {&s, begin}));
  extend_over_loop(s, begin, tick());
  s.block.steps.push_back({std::move(step)});
}

}  // namespace braintrace::plan
