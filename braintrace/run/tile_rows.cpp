// SPDX-License-Identifier: Apache-2.0
// Finds tile programs whose traces can be updated several rows at a time.
#include <algorithm>
#include <cstdlib>

#include "braintrace/run/tile_compile_impl.h"

namespace braintrace {
namespace {

// What the kernels for several rows take of the time of single ones, roughly.
constexpr double kWorkOfRows = 0.3;
// Elements; of shorter rows more are taken at once, for what a call costs.
constexpr std::int64_t kShortRow = 512;
// Elements of rows that add to one sum and are taken at once: the sum stays near.
constexpr std::int64_t kSumElements = 8192;
// Traces up to this size lie in a last-level cache, whose own fetching is better.
constexpr std::int64_t kCachedBytes = std::int64_t{12} << 20;

// Finds out how a trace moves from row to row.
class RowsOf {
 public:
  RowsOf(const TileCode& code, TileTrace& t) : code_(code), t_(t) {}

  bool prepare() {
    for (const TileTrace::Spread& s : t_.spread) {
      t_.operands[s.operand] = s.number;
      t_.rows.numbers |= 1U << s.operand;
    }
    const auto in_slot = [&](int entry) { return entry >= code_.slot_entry(0); };
    if (std::any_of(t_.operands, t_.operands + t_.num_operands, in_slot) ||
        std::any_of(t_.results, t_.results + kTraceResults, in_slot))
      return false;
    return t_.kind ? one_state() : two_states();
  }

 private:
  // Elements from one row to the next.
  std::int64_t step_of(int entry) const {
    return entry < 0 ? 0 : code_.strides(entry)[0];
  }
  std::int64_t step(int i) const { return step_of(t_.operands[i]); }
  bool all_step(const int* entries, int count, std::int64_t by) const {
    return std::all_of(entries, entries + count,
                       [&](int entry) { return entry < 0 || step_of(entry) == by; });
  }

  // Operands in the order of trace_kernels.h.
  bool one_state() {
    if (step(0) == 0 && t_.spread.empty())  // of a product d e
      std::swap(t_.operands[0], t_.operands[1]);
    const TraceForm form = t_.kind->form;
    const bool product = t_.kind->input == TraceInput::product;
    const bool added = form == TraceForm::added, met = form != TraceForm::moved;
    if (step(1) != 0 || (product && step(2) != 0) || (met && step(4) != 0) ||
        (met && !added && step(5) != 0))
      return false;
    const std::int64_t row = step(0);
    if (!all_step(t_.results, kTraceResults, row)) return false;
    if (met && form != TraceForm::single && step(t_.num_operands - 1) != row)
      return false;
    t_.rows.elements = row;
    t_.rows.x = step(product ? 3 : 2);
    t_.rows.y = met && !added ? step(6) : 0;
    t_.rows.drive = form == TraceForm::driven ? step(7) : 0;
    t_.call_rows = trace_rows_kernel(*t_.kind);
    return true;
  }

  bool two_states() {
    constexpr int kD = 2, kDf = 6, kX = 8, kSignal = 9, kSum = 11, kFresh = 12, kY = 13;
    const std::int64_t row = step(0);
    if (row == 0 || step(1) != row || !all_step(t_.results, kTraceResults, row) ||
        !all_step(t_.operands + kSum, 1, row) || !all_step(t_.operands + kD, 4, 0) ||
        !all_step(t_.operands + kSignal, 2, 0) || !all_step(t_.operands + kFresh, 1, 0))
      return false;
    for (const int i : {0, 1}) {
      auto& u = t_.rows.inputs[i];
      if (!u.number && step(kDf + i) != 0) return false;
      u.step = step(u.number ? kDf + i : kX);
    }
    t_.rows.elements = row;
    t_.rows.y = step(kY);
    return true;
  }

  const TileCode& code_;
  TileTrace& t_;
};

// How a pointer of a trace moves: bytes per position of the loop, row and element.
struct Moves {
  std::byte* first = nullptr;
  std::int64_t position = 0, row = 0, element = 0;
  std::byte* at(std::int64_t r, std::int64_t i) const {
    return first == nullptr ? nullptr : first + r * row + i * element;
  }
};

// One trace of a program that runs, at some position of the loop.
class RowRunner {
 public:
  RowRunner(const TileCode& code, const TileTrace& t, std::span<const void* const> inputs,
            std::span<void* const> outputs, std::span<const std::int64_t> bytes)
      : t_(t) {
    const auto moves = [&](int entry) {
      if (entry < 0) return Moves{};
      const auto i = static_cast<std::size_t>(entry);
      const auto size = static_cast<std::int64_t>(size_of(t.dtype));
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
    const auto ahead = [&](int i) {
      return static_cast<const std::byte*>(in_at_[i]) +
             (last ? together * in_[i].row - position * in_[i].position
                   : in_[i].position);
    };
    TraceRows rows = t_.rows;
    rows.ahead = ahead(0);
    if (!t_.kind && t_.operands[1] != t_.operands[0]) rows.ahead_2 = ahead(1);
    rows.count = together;
    t_.call_rows(in_at_, out_at_, n, rows);
  }

  // At all positions in one call, where the kernel takes several.
  bool takes_positions(std::size_t n) const {
    if (!t_.kind || n <= kNarrowTraceRow) return t_.kind.has_value();
    return adds_up(t_.kind->form) && in_[t_.num_operands - 1].position == 0 &&
           n * size_of(t_.dtype) <= kTracePiece;
  }
  void run_all(std::size_t n, std::int64_t together, std::int64_t count) const {
    std::int64_t operand_bytes[kTraceOperands], result_bytes[kTraceResults];
    for (int i = 0; i < t_.num_operands; ++i) operand_bytes[i] = in_[i].position;
    for (int i = 0; i < kTraceResults; ++i) result_bytes[i] = out_[i].position;
    TraceRows rows = t_.rows;
    rows.count = together;
    rows.positions = count;
    rows.operand_bytes = operand_bytes;
    rows.fetch = std::abs(in_[0].position) * count > kCachedBytes;
    rows.result_bytes = result_bytes;
    t_.call_rows(in_at_, out_at_, n, rows);
  }

  void next_position() {
    for (int i = 0; i < t_.num_operands; ++i)
      if (in_at_[i] != nullptr)
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
  const bool one_sum = t.takes_positions(static_cast<std::size_t>(size));
  const std::int64_t most =
      kTraceRows * std::max<std::int64_t>(
                       1, one_sum ? kSumElements / size / kTraceRows : kShortRow / size);
  for (std::int64_t row = rows.first, together; row < rows.last; row += together) {
    together = std::min(count == 1 ? rows.last : row + most, rows.last) - row;
    for (std::int64_t from = 0; from < size; from += code.layout.block) {
      const auto n = static_cast<std::size_t>(std::min(code.layout.block, size - from));
      t.start(row, from);
      if (t.takes_positions(n)) {
        t.run_all(n, together, count);
        continue;
      }
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
  const bool all = rows.action < 0;
  const auto first = static_cast<std::size_t>(all ? 0 : rows.action);
  const std::size_t last = all ? code.actions.size() : first + 1;
  for (std::size_t i = first; i < last; ++i) {
    const auto trace = static_cast<std::size_t>(code.actions[i].result);
    run_trace(code, rows, loop.count,
              RowRunner(code, code.traces[trace], inputs, outputs, loop.bytes));
  }
}

namespace {

bool touches_results_of(const TileCode& code, const TileTrace& t, const TileTrace& of) {
  const auto is_written = [&](int entry) {
    return entry >= 0 && std::any_of(of.results, of.results + kTraceResults, [&](int r) {
             return r >= 0 && code.may_share(r, entry);
           });
  };
  return std::any_of(t.operands, t.operands + t.num_operands, is_written) ||
         std::any_of(t.results, t.results + kTraceResults, is_written);
}

bool are_apart(const TileCode& code) {
  for (const TileAction& a : code.actions)
    for (const TileAction& b : code.actions)
      if (a.result != b.result &&
          touches_results_of(code, code.traces[static_cast<std::size_t>(a.result)],
                             code.traces[static_cast<std::size_t>(b.result)]))
        return false;
  return true;
}

}  // namespace

void prepare_rows(TileCode& code) {
  if (!code.layout.inside_rows || code.layout.shape.size() != 2 || code.actions.empty())
    return;
  std::vector<TileTrace> traces = code.traces;
  for (const TileAction& a : code.actions)
    if (a.kind != TileAction::trace ||
        !RowsOf(code, traces[static_cast<std::size_t>(a.result)]).prepare())
      return;
  code.by_rows = true;
  code.traces = std::move(traces);
  code.traces_apart = are_apart(code);
  code.work_ns *= kWorkOfRows;
}

}  // namespace braintrace
