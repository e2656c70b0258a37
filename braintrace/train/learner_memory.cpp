// SPDX-License-Identifier: Apache-2.0
// Where traces are between programs: as values, or as zeros and room for later ones.
#include <algorithm>
#include <cstring>

#include "braintrace/train/learner_impl.h"
#include "braintrace/train/room_impl.h"

namespace braintrace {
namespace {

// Traces up to this size are cleared where they are.
constexpr std::size_t kClearedBytes = std::size_t{1} << 18;

// One number in the place of many.
Array spread_zero(DType dtype, const Shape& shape) {
  return zeros({}, dtype).broadcast_to(shape);
}

// One key per lane, so that lanes draw independently.
Array lane_keys(const Array& key, std::int64_t lanes) {
  std::vector<Array> keys;
  for (std::int64_t i = 0; i < lanes; ++i)
    keys.push_back(
        key_array(fold_in(key_from_array(key), static_cast<std::uint64_t>(i))));
  return stacked(keys);
}

}  // namespace

void Learner::Impl::clear_traces() {
  broken = traces_are_zero = false;
  if (traces.empty())
    for (const TracePacking::Stored& s : packing.stored())
      // One number until a program reads it: windows may never do.
      traces.push_back(spread_zero(s.type.dtype, s.type.shape));
  end_history();
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const TracePacking::Stored& s = packing.stored()[i];
    const TraceSlot& t = rule->traces()[s.trace];
    if (t.kind == "key" && lanes())
      traces[i] = lane_keys(*t.initial, *lanes());
    else if (t.initial)
      traces[i] = t.initial->broadcast_to(s.type.shape).contiguous();
  }
}

// Noise goes on: a trace that begins as something else than zero is no history.
void Learner::Impl::end_history() {
  if (traces_are_zero) return;
  traces_are_zero = true;
  spare.resize(traces.size());
  for (std::size_t i = 0; i < traces.size(); ++i) {
    Array& trace = traces[i];
    if (rule->traces()[packing.stored()[i].trace].initial) {
      traces_are_zero = false;
    } else if (is_free(trace) && trace.num_bytes() <= kClearedBytes) {
      std::memset(trace.mutable_raw(), 0, trace.num_bytes());
    } else if (trace.is_contiguous()) {
      const bool is_zero = spare[i].dtype() == trace.dtype() &&
                           spare[i].shape() == trace.shape() && !spare[i].is_contiguous();
      if (!is_zero) spare[i] = spread_zero(trace.dtype(), trace.shape());
      swap(trace, spare[i]);
    }
  }
}

// A program reads zeros that were never written out.
void Learner::Impl::make_room(std::size_t i) {
  if (i >= spare.size() || !has_room(spare[i], traces[i])) {
    traces[i] = traces[i].contiguous();
    return;
  }
  swap(traces[i], spare[i]);
  std::memset(traces[i].mutable_raw(), 0, traces[i].num_bytes());
}

// A program that begins a history writes where the last one was.
void Learner::Impl::lend_room(Executable& e) {
  const StepProgram& p = e.program();
  if (p.num_traces > 0) return;
  if (p.num_traces_out == 0) spare.clear();  // none is written: the room is given back
  const std::size_t first = p.first_trace_out();
  for (std::size_t i = 0; i < std::min(spare.size(), p.num_traces_out); ++i)
    if (first + i < e.outputs.size() && has_room(spare[i], traces[i]))
      swap(spare[i], e.outputs[first + i]);
}

// New values in, old arrays back to the program: it writes into them next time.
void Learner::Impl::commit(Executable& e, const Extras& extras) {
  const StepProgram& p = e.program();
  for (const ProgramLeaf& leaf : p.leaves)
    if (leaf.exit && !e.moved(*leaf.exit))
      leaf.state->exchange(leaf.leaf, e.outputs[*leaf.exit]);
  for (std::size_t i = 0; i < extras.moments.size(); ++i)
    if (!e.moved(p.first_moment_out() + i))
      swap(e.outputs[p.first_moment_out() + i], *extras.moments[i]);
  commit_traces(e);
  calls += p.calls;
  trace_steps += p.steps;
}

void Learner::Impl::commit_traces(Executable& e) {
  const StepProgram& p = e.program();
  if (p.num_traces_out == 0) return end_history();
  traces_are_zero = false;
  const auto outputs =
      std::span(e.outputs).subspan(p.first_trace_out(), p.num_traces_out);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!e.moved(p.first_trace_out() + i)) swap(outputs[i], traces[i]);
  if (p.num_traces > 0) return;
  for (std::size_t i = 0; i < std::min(spare.size(), outputs.size()); ++i)
    if (!outputs[i].is_contiguous()) swap(spare[i], outputs[i]);
}

}  // namespace braintrace
