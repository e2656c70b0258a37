// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/tile_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/base/divide.h"
#include "braintrace/base/error.h"
#include "braintrace/run/pair_kernels.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/run/tile_compile_impl.h"
#include "braintrace/run/tile_kernels.h"

namespace braintrace {
namespace {

// Positions one thread takes at a time, at most, and what the number of such chunks is a
// multiple of: threads have even shares.
constexpr std::int64_t kChunk = 16384, kEvenShares = 4;

std::size_t bytes_of(std::int64_t n, std::size_t element) {
  return static_cast<std::size_t>(n) * element;
}

struct Pointers {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
};

// Runs the blocks [first, last) of a program with the scratch of one worker.
class ChunkRunner {
 public:
  ChunkRunner(const TileCode& code, const Pointers& p, std::byte* scratch)
      : code_(code), p_(p), table_(reinterpret_cast<std::byte**>(scratch)) {
    std::byte* slots = scratch + code.table_bytes();
    for (int i = 0; i < code.num_slots; ++i)
      table_[code.slot_entry(i)] = slots + static_cast<std::size_t>(i) * code.slot_bytes;
  }

  // A program of one block.
  void run_whole() {
    prepare();
    place(0);
    for (const TileAction& a : code_.actions) act(a, {0, code_.layout.size});
  }

  void run(std::int64_t first, std::int64_t last) {
    prepare();
    if (code_.layout.shape.size() <= kMaxAxes)
      return code_.layout.inside_rows ? walk(first, last) : walk_rows(first, last);
    for (std::int64_t b = first; b < last; ++b) {
      const TileLayout::Run run = code_.layout.run(b);
      place(run.start);
      for (const TileAction& a : code_.actions) act(a, run);
    }
  }

 private:
  static constexpr std::size_t kMaxAxes = 12;

  // What serves all blocks.
  void prepare() {
    for (const TileAction& a : code_.once) {
      const TileLayout::Run all{0, std::min(code_.layout.block, code_.layout.size)};
      if (a.kind == TileAction::fill)
        spread_number(input(a.operands[0]), table_[a.result],
                      static_cast<std::size_t>(all.size), a.element);
      else
        gather(a, all);
    }
  }

  // Pointers to where a block begins; returns how many axes there are around its rows.
  std::size_t start(std::int64_t position, std::int64_t* index) {
    const TileLayout& t = code_.layout;
    place(position);
    const std::size_t outer = t.shape.empty() ? 0 : t.shape.size() - 1;
    std::int64_t rest = position / t.row;
    for (std::size_t a = outer; a-- > 0; rest /= t.shape[a]) index[a] = rest % t.shape[a];
    return outer;
  }

  // Blocks of whole rows, one after the other: pointers move by what lies between two
  // blocks, without divisions.
  void walk_rows(std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    const TileLayout& t = code_.layout;
    const std::int64_t rows = t.block / t.row;
    TileLayout::Run run = t.run(first);
    std::int64_t index[kMaxAxes] = {};
    const std::size_t outer = start(run.start, index);
    for (std::int64_t b = first;;) {
      for (const TileAction& a : code_.actions) act(a, run);
      if (++b == last) return;
      next_rows(rows, index, outer);
      run = t.run(b);
    }
  }

  // The same for blocks inside rows.
  void walk(std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    const TileLayout& t = code_.layout;
    TileLayout::Run run = t.run(first);
    std::int64_t at = run.start % t.row, index[kMaxAxes] = {};
    const std::size_t outer = start(run.start, index);
    if (is_one_kernel() && outer > 0 && t.blocks_per_row() == 1)
      return rows_of_kernel(last - first, index, outer);
    for (std::int64_t b = first;;) {
      for (const TileAction& a : code_.actions) act(a, run);
      if (++b == last) return;
      run.start += run.size;
      if (at + run.size < t.row) {
        shift(outer, run.size);
        at += run.size;
      } else {
        shift(outer, -at);
        at = 0;
        next_rows(1, index, outer);
      }
      run.size = std::min(t.block, t.row - at);
    }
  }

  bool is_one_kernel() const {
    return code_.actions.size() == 1 && code_.actions[0].kind == TileAction::kernel &&
           !code_.actions[0].single;
  }

  // What a program of one kernel costs per row beside the kernel counts for short rows.
  void rows_of_kernel(std::int64_t rows, std::int64_t* index, std::size_t outer) {
    const std::size_t inner = outer - 1;
    while (rows > 0) {
      const std::int64_t n = std::min(rows, code_.layout.shape[inner] - index[inner]);
      rows_along(inner, n);
      rows -= n;
      if (rows == 0) return;
      shift(inner, n - 1);  // next_rows moves the last step
      index[inner] += n - 1;
      next_rows(1, index, outer);
    }
  }
  void rows_along(std::size_t axis, std::int64_t rows) {
    const TileAction& a = code_.actions[0];
    const void* in[4];
    std::int64_t step[4];
    for (int i = 0; i < 4; ++i) {
      in[i] = table_[a.operands[i]];
      step[i] = bytes_between(axis, a.operands[i]);
    }
    std::byte* out = table_[a.result];
    const std::int64_t out_step = bytes_between(axis, a.result);
    for (; rows > 0; --rows, out += out_step) {
      a.call(in, out, static_cast<std::size_t>(code_.layout.row));
      for (int i = 0; i < 4; ++i) in[i] = static_cast<const std::byte*>(in[i]) + step[i];
    }
  }
  std::int64_t bytes_between(std::size_t axis, int entry) const {
    const std::int64_t* bytes = code_.moves.data() + axis * code_.moving.size();
    for (std::size_t m = 0; m < code_.moving.size(); ++m)
      if (code_.moving[m].entry == entry) return bytes[m];
    return 0;
  }

  void next_rows(std::int64_t rows, std::int64_t* index, std::size_t outer) {
    for (std::size_t a = outer; a-- > 0;) {
      const std::int64_t size = code_.layout.shape[a];
      shift(a, rows);
      index[a] += rows;
      if (index[a] < size) return;
      rows = index[a] / size;
      shift(a, -rows * size);
      index[a] -= rows * size;
    }
  }

  // By so many positions along an axis.
  void shift(std::size_t axis, std::int64_t positions) {
    if (positions == 0 || code_.layout.shape.empty()) return;
    const std::int64_t* bytes = code_.moves.data() + axis * code_.moving.size();
    for (const TilePlace& m : code_.moving) table_[m.entry] += positions * *bytes++;
  }

  void place(std::int64_t start) {
    for (const TilePlace& m : code_.moving) {
      const std::int64_t at =
          start == 0 ? 0 : offset_of(code_.layout, code_.strides(m.entry), start);
      std::byte* base =
          code_.is_input(m.entry)
              ? static_cast<std::byte*>(
                    const_cast<void*>(p_.inputs[static_cast<std::size_t>(m.entry)]))
              : static_cast<std::byte*>(
                    p_.outputs[static_cast<std::size_t>(m.entry - code_.num_inputs)]);
      table_[m.entry] = base + at * static_cast<std::int64_t>(m.element);
    }
  }

  void act(const TileAction& a, TileLayout::Run run) {
    const std::size_t n = a.single ? 1 : static_cast<std::size_t>(run.size);
    switch (a.kind) {
      case TileAction::kernel: {
        const void* in[4] = {table_[a.operands[0]], table_[a.operands[1]],
                             table_[a.operands[2]], table_[a.operands[3]]};
        a.call(in, table_[a.result], n);
        break;
      }
      case TileAction::fill:
        spread_number(table_[a.operands[0]], table_[a.result], n, a.element);
        break;
      case TileAction::gather:
        gather(a, run);
        break;
      case TileAction::scatter:
        scatter(a.operands[0], a.result, run, a.element);
        break;
      case TileAction::gather_pair:
        gather_pair(a, run);
        break;
      case TileAction::scatter_pair:
        scatter_pair(a, run);
        break;
      case TileAction::trace:
        update_trace(code_.traces[static_cast<std::size_t>(a.result)], run);
        break;
    }
  }

  void update_trace(const TileTrace& t, TileLayout::Run run) {
    const void* in[kTraceOperands];
    void* out[kTraceResults];
    for (int i = 0; i < t.num_operands; ++i)
      in[i] = t.operands[i] < 0 ? nullptr : table_[t.operands[i]];
    for (int i = 0; i < kTraceResults; ++i) out[i] = table_[t.results[i]];
    const auto n = static_cast<std::size_t>(run.size);
    t.kind ? t.call(in, out, n) : t.call_rows(in, out, n, t.rows);
  }

  const std::byte* input(int entry) const {
    return static_cast<const std::byte*>(p_.inputs[static_cast<std::size_t>(entry)]);
  }
  std::byte* output(int entry) const {
    return static_cast<std::byte*>(
        p_.outputs[static_cast<std::size_t>(entry - code_.num_inputs)]);
  }
  std::int64_t bytes_to(int entry, std::int64_t start) const {
    return 4 * offset_of(code_.layout, code_.strides(entry), start);
  }

  void gather(const TileAction& a, TileLayout::Run run) {
    gather(a.operands[0], a.result, run, a.element);
  }
  void gather(int from, int to, TileLayout::Run run, std::size_t element) {
    gather_run(code_.layout, code_.strides(from), run, element, input(from), table_[to]);
  }
  void scatter(int from, int to, TileLayout::Run run, std::size_t element) {
    scatter_run(code_.layout, code_.strides(to), run, element, table_[from], output(to));
  }

  void gather_pair(const TileAction& a, TileLayout::Run run) {
    const std::int64_t apart = input(a.operands[1]) - input(a.operands[0]);
    if (apart != 4 && apart != -4) {
      gather(a.operands[0], a.result, run, a.element);
      return gather(a.operands[1], a.second, run, a.element);
    }
    const int first = apart > 0 ? 0 : 1;
    const std::byte* from = input(a.operands[first]) + bytes_to(a.operands[0], run.start);
    split_pairs(from, table_[apart > 0 ? a.result : a.second],
                table_[apart > 0 ? a.second : a.result],
                static_cast<std::size_t>(run.size));
  }

  void scatter_pair(const TileAction& a, TileLayout::Run run) {
    const std::int64_t apart = output(a.second) - output(a.result);
    if (apart != 4 && apart != -4) {
      scatter(a.operands[0], a.result, run, a.element);
      return scatter(a.operands[1], a.second, run, a.element);
    }
    std::byte* to =
        output(apart > 0 ? a.result : a.second) + bytes_to(a.result, run.start);
    join_pairs(table_[a.operands[apart > 0 ? 0 : 1]],
               table_[a.operands[apart > 0 ? 1 : 0]], to,
               static_cast<std::size_t>(run.size));
  }

  const TileCode& code_;
  const Pointers& p_;
  std::byte** table_;
};

}  // namespace

struct TileProgram::Compiled {
  TileCode code;
  std::string text;
  std::int64_t blocks = 0, per_chunk = 1;
  bool is_one_block() const { return blocks == 1 && !code.by_rows; }
};

TileProgram::TileProgram(const TileSpec& spec) {
  TileCode code = compile_tile(spec);
  BT_INVARIANT(code.table_bytes() + bytes_of(code.num_slots, code.slot_bytes) <=
               ThreadPool::kScratchBytes);
  std::string text =
      fmt::format("{} steps over {}:", spec.steps.size(), to_string(code.layout.shape));
  for (const TileStep& s : spec.steps) text += fmt::format(" {}", to_string(s.op));
  const std::int64_t blocks = code.layout.num_blocks();
  const std::int64_t shares = divided_up(code.layout.size, kEvenShares * kChunk);
  const std::int64_t per_chunk =
      divided_up(blocks, std::max<std::int64_t>(1, shares) * kEvenShares);
  compiled_ = std::make_unique<const Compiled>(
      Compiled{std::move(code), std::move(text), blocks, per_chunk});
}

TileProgram::~TileProgram() = default;
TileProgram::TileProgram(TileProgram&&) noexcept = default;
TileProgram& TileProgram::operator=(TileProgram&&) noexcept = default;

void TileProgram::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                      ThreadPool& pool) const {
  const TileCode& code = compiled_->code;
  BT_INVARIANT(static_cast<int>(inputs.size()) == code.num_inputs &&
               static_cast<int>(outputs.size()) == code.num_outputs);
  const Pointers p{inputs, outputs};
  if (compiled_->is_one_block()) return ChunkRunner(code, p, pool.scratch(0)).run_whole();
  const std::int64_t blocks = compiled_->blocks;
  const std::int64_t per_chunk = std::max<std::int64_t>(1, compiled_->per_chunk);
  const bool shared = pool.size() > 1 && code.work_ns > kSharedWork;
  if (code.by_rows) {
    const std::int64_t rows = code.layout.shape[0];
    const std::int64_t per_tile =
        std::max<std::int64_t>(kTraceRows, kChunk / code.layout.row);
    const std::int64_t tiles = divided_up(rows, per_tile);
    const int traces = traces_apart();
    return pool.for_tiles_if(shared, tiles * traces, [&](std::int64_t i, int) {
      const std::int64_t first = i % tiles * per_tile;
      run_rows(code,
               {first, std::min(rows, first + per_tile),
                traces > 1 ? static_cast<int>(i / tiles) : -1},
               {}, inputs, outputs);
    });
  }
  if (!shared) return ChunkRunner(code, p, pool.scratch(0)).run(0, blocks);
  pool.for_tiles(divided_up(blocks, per_chunk), [&](std::int64_t i, int worker) {
    ChunkRunner(code, p, pool.scratch(worker))
        .run(i * per_chunk, std::min(blocks, (i + 1) * per_chunk));
  });
}

void TileProgram::run_serial(std::span<const void* const> inputs,
                             std::span<void* const> outputs, std::byte* scratch) const {
  const TileCode& code = compiled_->code;
  if (code.by_rows) return run_rows(code, {0, code.layout.shape[0]}, {}, inputs, outputs);
  const Pointers p{inputs, outputs};
  if (compiled_->is_one_block()) return ChunkRunner(code, p, scratch).run_whole();
  ChunkRunner(code, p, scratch).run(0, compiled_->blocks);
}

bool TileProgram::knows_loops() const { return compiled_->code.by_rows; }
std::int64_t TileProgram::rows() const { return compiled_->code.layout.shape[0]; }

void TileProgram::run_loop(std::span<const void* const> inputs,
                           std::span<void* const> outputs, Rows rows, std::int64_t count,
                           std::span<const std::int64_t> bytes) const {
  run_rows(compiled_->code, {rows.first, rows.last, rows.trace}, {count, bytes}, inputs,
           outputs);
}

int TileProgram::traces_apart() const {
  const TileCode& code = compiled_->code;
  return code.traces_apart ? static_cast<int>(code.actions.size()) : 1;
}

int TileProgram::trace_that_writes(int output) const {
  const TileCode& code = compiled_->code;
  for (std::size_t i = 0; i < code.actions.size(); ++i) {
    const int* results =
        code.traces[static_cast<std::size_t>(code.actions[i].result)].results;
    if (std::find(results, results + kTraceResults, code.num_inputs + output) !=
        results + kTraceResults)
      return static_cast<int>(i);
  }
  return -1;
}

double TileProgram::work_ns() const { return compiled_->code.work_ns; }
std::string TileProgram::describe() const { return compiled_->text; }

bool tile_supports(MicroOp op, DType operand, DType result) {
  return tile_kernel(op, operand, result) != nullptr;
}

}  // namespace braintrace
