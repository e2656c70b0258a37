// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a plan.
#include <algorithm>
#include <cstring>
#include <ctime>

#include "braintrace/run/event_gemm.h"
#include "braintrace/run/plan_program_impl.h"

namespace braintrace::plan {
namespace {

void move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::byte*& slot(Frame& f, int buffer) {
  return f.base[static_cast<std::size_t>(buffer)];
}

void run(CopyStep& s, Frame& f) { s.copy.run(f.at(s.from), f.at(s.to), *f.pool); }

void run(FillStep& s, Frame& f) {
  std::byte* to = f.at(s.to);
  const std::size_t element = s.element.num_bytes();
  const auto size = static_cast<std::size_t>(s.to.size()) * element;
  if (size == 0) return;
  std::memcpy(to, s.element.raw(), element);
  for (std::size_t done = element; done < size; done *= 2)
    std::memcpy(to + done, to, std::min(done, size - done));
}

void run(FusedStep& s, Frame& f) {
  for (std::size_t i = 0; i < s.in.size(); ++i) s.in_memory[i] = f.at(s.in[i]);
  for (std::size_t i = 0; i < s.out.size(); ++i) s.out_memory[i] = f.at(s.out[i]);
  std::visit([&](const auto& p) { p.run(s.in_memory, s.out_memory, *f.pool); },
             s.program);
}

void run(GemmStep& s, Frame& f) {
  const void* bias = s.bias ? f.at(*s.bias) : nullptr;
  const auto product = s.events ? (s.packed_b ? gemm_events_tiled : gemm_events)
                                : (s.packed_b ? gemm_packed : gemm);
  product(s.spec, f.at(s.a), f.at(s.b), f.at(s.c), *f.pool, bias);
}

void run(PackStep& s, Frame& f) {
  (s.events ? tile_b : pack_b)(s.spec, f.at(s.b), f.at(s.to), *f.pool);
}

const std::int32_t* indices(const KernelStep& s, const Frame& f) {
  return reinterpret_cast<const std::int32_t*>(f.at(s.in[1]));
}
const void* third(const KernelStep& s, const Frame& f) {
  return s.in.size() > 2 ? f.at(s.in[2]) : nullptr;
}
void run(const ReduceKernel& k, const KernelStep& s, Frame& f) {
  k.run(f.at(s.in[0]), f.at(s.out), *f.pool);
}
void run(const ConvKernel& k, const KernelStep& s, Frame& f) {
  k.run(f.at(s.in[0]), f.at(s.in[1]), third(s, f), f.at(s.out), *f.pool);
}
void run(const SparseKernel& k, const KernelStep& s, Frame& f) {
  k.run(f.at(s.in[0]), f.at(s.in[1]), third(s, f), f.at(s.out), *f.pool);
}
void run(const SparseOuterKernel& k, const KernelStep& s, Frame& f) {
  k.run(f.at(s.in[0]), f.at(s.in[1]), f.at(s.out), *f.pool);
}
void run(const GatherKernel& k, const KernelStep& s, Frame& f) {
  gather(k.spec, f.at(s.in[0]), indices(s, f), f.at(s.out), *f.pool);
}
void run(const ScatterKernel& k, const KernelStep& s, Frame& f) {
  move_bytes(f.at(s.out), f.at(s.in[0]),
             s.out.size() * static_cast<std::int64_t>(size_of(s.out.dtype)));
  scatter_add(k.spec, indices(s, f), f.at(s.in[2]), f.at(s.out), *f.pool);
}
void run(KernelStep& s, Frame& f) {
  std::visit([&](const auto& k) { run(k, s, f); }, s.kernel);
}

// Some ops hand out another array instead of filling the one they got.
void take_back(Array& out, const View& v, std::byte* wanted) {
  if (out.raw() == wanted) return;
  const Array packed = out.contiguous();
  move_bytes(wanted, static_cast<const std::byte*>(packed.raw()),
             static_cast<std::int64_t>(packed.num_bytes()));
  out = Array::borrowed(v.dtype, v.shape, wanted, std::make_shared<int>(0));
}

void run(EvalStep& s, Frame& f) {
  for (std::size_t i = 0; i < s.in.size(); ++i) s.in_arrays[i].point_to(f.at(s.in[i]));
  for (std::size_t i = 0; i < s.out.size(); ++i) s.out_arrays[i].point_to(f.at(s.out[i]));
  s.op->eval({*s.op, s.in_arrays, s.out_arrays, s.attrs});
  for (std::size_t i = 0; i < s.out.size(); ++i)
    take_back(s.out_arrays[i], s.out[i], f.at(s.out[i]));
}

// Where turn `from_last` (0 = the last one) writes the carried value.
std::byte* target(const Carry& c, const Frame& f, std::int64_t from_last) {
  if (c.spare >= 0 && from_last % 2 == 1)
    return f.base[static_cast<std::size_t>(c.spare)];
  return f.at(c.result);
}

void advance(const Walk& w, Frame& f, std::int64_t t) {
  slot(f, w.slot) = f.at(w.stacked) + t * w.stride;
}

// The place in time of turn k.
std::int64_t time_of(const ScanStep& s, std::int64_t k) {
  return s.reverse ? s.length - 1 - k : k;
}

std::byte* stacked_at(const ScanStep& s, int y, Frame& f, std::int64_t turn) {
  const Walk& w = s.ys[static_cast<std::size_t>(y)];
  return f.at(w.stacked) + time_of(s, turn) * w.stride;
}

// Where a carry is before turn k, and where that turn writes it.
std::byte* before_turn(const ScanStep& s, const Carry& c, Frame& f, std::int64_t k) {
  if (c.entered >= 0 && k < s.length) return stacked_at(s, c.entered, f, k);
  if (k == 0) return f.at(c.init);
  if (c.stacked >= 0) return stacked_at(s, c.stacked, f, k - 1);
  return target(c, f, s.length - k);
}
std::byte* after_turn(const ScanStep& s, const Carry& c, Frame& f, std::int64_t k) {
  if (c.entered >= 0 && k + 1 < s.length) return stacked_at(s, c.entered, f, k + 1);
  return target(c, f, s.length - 1 - k);
}

void run(ScanStep& s, Frame& f) {
  for (const Carry& c : s.carry)
    if (c.entered >= 0 && s.length > 0)
      move_bytes(before_turn(s, c, f, 0), f.at(c.init), c.bytes);
  if (s.sliced && !(s.sliced->only_shared && f.pool->size() == 1)) {
    run_sliced(s, f);
  } else {
    for (std::int64_t k = 0; k < s.length; ++k) {
      set_slots(s, f, k);
      run_block(*s.body, f);
    }
  }
  for (const Carry& c : s.carry)
    move_bytes(f.at(c.result), before_turn(s, c, f, s.length), c.bytes);
}

bool holds(const View& predicate, const Frame& f) {
  bool value;
  std::memcpy(&value, f.at(predicate), sizeof value);
  return value;
}

void run(WhileStep& s, Frame& f) {
  for (const Carry& c : s.carry) slot(f, c.now) = f.at(c.init);
  while (true) {
    run_block(*s.condition, f);
    if (!holds(s.predicate, f)) break;
    for (const Carry& c : s.carry)
      slot(f, c.next) = target(c, f, slot(f, c.now) == f.at(c.result) ? 1 : 0);
    run_block(*s.body, f);
    for (const Carry& c : s.carry) slot(f, c.now) = slot(f, c.next);
  }
  for (const Carry& c : s.carry) move_bytes(f.at(c.result), slot(f, c.now), c.bytes);
}

void run(CondStep& s, Frame& f) {
  run_block(holds(s.predicate, f) ? *s.if_true : *s.if_false, f);
}

// Of this thread: other programs on a busy machine do not count.
std::int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void run_timed(Step& s, Frame& f) {
  const std::int64_t start = cpu_ns();
  std::visit([&](auto& kind) { run(kind, f); }, s.kind);
  const std::int64_t ns = cpu_ns() - start;
  s.ns += ns;
  s.best_ns = std::min(s.best_ns, ns);
  ++s.runs;
}

}  // namespace

void set_slots(const ScanStep& s, Frame& f, std::int64_t k) {
  for (const Carry& c : s.carry) {
    slot(f, c.now) = before_turn(s, c, f, k);
    slot(f, c.next) = after_turn(s, c, f, k);
  }
  for (const Walk& w : s.xs) advance(w, f, time_of(s, k));
  for (const Walk& w : s.ys) advance(w, f, time_of(s, k));
}

void run_block(Block& b, Frame& f) {
  if (f.profile) {
    for (Step& s : b.steps) run_timed(s, f);
    return;
  }
  for (Step& s : b.steps) std::visit([&](auto& kind) { run(kind, f); }, s.kind);
}

}  // namespace braintrace::plan
