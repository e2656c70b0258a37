// SPDX-License-Identifier: Apache-2.0
// Finds tile programs whose traces can be updated several rows at a time.
#include <algorithm>

#include "braintrace/run/tile_compile_impl.h"

namespace braintrace {
namespace {

// What the kernels for several rows take of the time of single ones, roughly.
constexpr double kWorkOfRows = 0.3;

// Elements from one row to the next.
std::int64_t row_step(const TileCode& code, int entry) { return code.strides(entry)[0]; }

// Operands in the order of trace_kernels.h.
bool prepare(const TileCode& code, TileTrace& t) {
  if (!t.kind) return false;
  if (t.fixed_d) t.operands[1] = *t.fixed_d;
  const auto in_slot = [&](int entry) { return entry >= code.slot_entry(0); };
  if (std::any_of(t.operands, t.operands + t.num_operands, in_slot) ||
      std::any_of(t.results, t.results + kTraceResults, in_slot))
    return false;
  const auto step = [&](int i) { return row_step(code, t.operands[i]); };
  if (step(0) == 0) std::swap(t.operands[0], t.operands[1]);  // of a product d e
  const bool product = t.kind->input == TraceInput::product;
  const bool added = t.kind->form == TraceForm::added;
  if (step(1) != 0 || step(4) != 0 || (product && step(2) != 0) ||
      (!added && step(5) != 0))
    return false;
  const std::int64_t row = step(0);
  for (const int result : {0, 1})
    if (row_step(code, t.results[result]) != row) return false;
  if (t.kind->form != TraceForm::single && step(t.num_operands - 1) != row) return false;
  t.rows = {row, step(product ? 3 : 2), added ? 0 : step(6),
            t.kind->form == TraceForm::driven ? step(7) : 0, t.fixed_d.has_value()};
  t.call_rows = trace_rows_kernel(*t.kind, kTraceRows);
  t.call_row = trace_rows_kernel(*t.kind, 1);
  return true;
}

// How a pointer of a trace moves: bytes per position of the loop, row and element.
struct Moves {
  std::byte* first;
  std::int64_t position, row, element;
  std::byte* at(std::int64_t r, std::int64_t i) const {
    return first + r * row + i * element;
  }
};

// One trace of a program that runs, at some position of the loop.
class RowRunner {
 public:
  RowRunner(const TileCode& code, const TileTrace& t, std::span<const void* const> inputs,
            std::span<void* const> outputs, std::span<const std::int64_t> bytes)
      : t_(t) {
    const auto moves = [&](int entry) {
      const auto i = static_cast<std::size_t>(entry);
      const auto size = static_cast<std::int64_t>(size_of(t.kind->dtype));
      void* first = code.is_input(entry) ? const_cast<void*>(inputs[i])
                                         : outputs[i - inputs.size()];
      const Ints& strides = code.strides(entry);
      return Moves{static_cast<std::byte*>(first), bytes.empty() ? 0 : bytes[i],
                   strides[0] * size, strides[1] * size};
    };
    for (int i = 0; i < t.num_operands; ++i) in_[i] = moves(t.operands[i]);
    for (int i = 0; i < kTraceResults; ++i) out_[i] = moves(t.results[i]);
  }

  // To the first position, at an element of a row.
  void start(std::int64_t row, std::int64_t element) {
    for (int i = 0; i < t_.num_operands; ++i) in_at_[i] = in_[i].at(row, element);
    for (int i = 0; i < kTraceResults; ++i) out_at_[i] = out_[i].at(row, element);
  }

  // `last`: the next rows come, not the next position.
  void run(std::size_t n, std::int64_t together, std::int64_t position, bool last) const {
    TraceRows rows = t_.rows;
    rows.ahead =
        static_cast<const std::byte*>(in_at_[0]) +
        (last ? together * in_[0].row - position * in_[0].position : in_[0].position);
    (together == 1 ? t_.call_row : t_.call_rows)(in_at_, out_at_, n, rows);
  }

  void next_position() {
    for (int i = 0; i < t_.num_operands; ++i)
      in_at_[i] = static_cast<const std::byte*>(in_at_[i]) + in_[i].position;
    for (int i = 0; i < kTraceResults; ++i)
      out_at_[i] = static_cast<std::byte*>(out_at_[i]) + out_[i].position;
  }

 private:
  const TileTrace& t_;
  Moves in_[kTraceOperands], out_[kTraceResults];
  const void* in_at_[kTraceOperands];
  void* out_at_[kTraceResults];
};

void run_trace(const TileCode& code, RowRange rows, std::int64_t count, RowRunner t) {
  const std::int64_t size = code.layout.row;
  for (std::int64_t row = rows.first, together; row < rows.last; row += together) {
    together = row + kTraceRows <= rows.last ? kTraceRows : 1;
    for (std::int64_t from = 0; from < size; from += code.layout.block) {
      const auto n = static_cast<std::size_t>(std::min(code.layout.block, size - from));
      t.start(row, from);
      for (std::int64_t p = 0;;) {
        t.run(n, together, p, p + 1 == count);
        if (++p == count) break;
        t.next_position();
      }
    }
  }
}

}  // namespace

// One trace after the other: a trace may read the results of those before it, but only at
// its own position and row, since no two positions share memory but their sums.
void run_rows(const TileCode& code, RowRange rows, const LoopAround& loop,
              std::span<const void* const> inputs, std::span<void* const> outputs) {
  for (const TileAction& a : code.actions)
    run_trace(code, rows, loop.count,
              RowRunner(code, code.traces[static_cast<std::size_t>(a.result)], inputs,
                        outputs, loop.bytes));
}

void prepare_rows(TileCode& code) {
  if (!code.layout.inside_rows || code.layout.shape.size() != 2 || code.actions.empty())
    return;
  std::vector<TileTrace> traces = code.traces;
  for (const TileAction& a : code.actions)
    if (a.kind != TileAction::trace ||
        !prepare(code, traces[static_cast<std::size_t>(a.result)]))
      return;
  code.by_rows = true;
  code.traces = std::move(traces);
  code.work_ns *= kWorkOfRows;
}

}  // namespace braintrace
