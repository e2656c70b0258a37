// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tile program as a list of actions on one block.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "braintrace/run/tile_kernels.h"
#include "braintrace/run/tile_layout_impl.h"
#include "braintrace/run/tile_program.h"
#include "braintrace/run/trace_kernels.h"

namespace braintrace {

// Memory is reached through a table of pointers, whose entries are the inputs, then the
// outputs, then the slots of scratch.
struct TileAction {
  // The last two move two values whose elements may lie in turn: operands 0 and 1 of a
  // gather are inputs, `result` and `second` its slots; of a scatter operands are slots.
  enum Kind : std::uint8_t {
    kernel,
    fill,
    gather,
    scatter,
    gather_pair,
    scatter_pair,
    trace  // TileCode::traces[result]
  } kind = kernel;
  bool single = false;      // one element instead of a block
  std::size_t element = 0;  // bytes, for fill, gather and scatter
  TileKernel call = nullptr;
  int operands[4] = {0, 0, 0, 0};
  int result = 0, second = 0;
  // What a kernel computes: op, or a sum with this many products; bit i: operand i is one
  // number.
  MicroOp op = MicroOp::copy;
  DType dtype = DType::f32;
  int products = 0;
  unsigned scalars = 0;
};

// Kernels that are the update of a trace together (run/trace_kernels.h); entries of the
// table.
struct TileTrace {
  TraceKernel call = nullptr;
  int num_operands = 0;
  int operands[kTraceOperands] = {};  // -1: there is none
  int results[kTraceResults] = {};
  DType dtype = DType::f32;
  std::optional<TraceKind> kind = {};  // of one state
  // Operands that are one number spread over a block: its place among the operands, and
  // the entry of the number.
  struct Spread {
    int operand, number;
  };
  std::vector<Spread> spread = {};
  // Rows one after the other (TileCode::by_rows); two states have no other call.
  TraceRowsKernel call_rows = nullptr;
  TraceRows rows = {};
};

// An entry that points into an input or output and moves from block to block.
struct TilePlace {
  int entry;
  std::size_t element;
};

struct TileCode {
  TileLayout layout;  // operands: inputs, then outputs
  int num_inputs = 0, num_outputs = 0, num_slots = 0;
  std::vector<int> memory_of;  // by output: the input it may lie in the memory of, or -1
  std::size_t slot_bytes = 0;
  std::vector<TilePlace> moving;
  Ints moves;  // bytes between neighbours along an axis: axes x moving entries
  std::vector<TileAction> once;     // gathers and fills whose result serves all blocks
  std::vector<TileAction> actions;  // of each block, in order
  std::vector<TileTrace> traces;
  // Actions are traces, of which several rows may run at once; two axes.
  bool by_rows = false;
  bool traces_apart = false;  // none of them touches what another one writes
  double work_ns = 0;

  bool is_input(int entry) const { return entry < num_inputs; }
  bool is_output(int entry) const { return !is_input(entry) && entry < slot_entry(0); }
  // May both be the same memory?
  bool may_share(int a, int b) const {
    const auto lies_in = [&](int out, int in) {
      return is_output(out) &&
             memory_of[static_cast<std::size_t>(out - num_inputs)] == in;
    };
    return a == b || lies_in(a, b) || lies_in(b, a);
  }
  int slot_entry(int slot) const { return num_inputs + num_outputs + slot; }
  const Ints& strides(int entry) const {
    return layout.strides[static_cast<std::size_t>(entry)];
  }
  std::size_t table_bytes() const {
    const auto n = static_cast<std::size_t>(num_inputs + num_outputs + num_slots);
    return (n * sizeof(void*) + 63) / 64 * 64;
  }
};

TileCode compile_tile(const TileSpec& spec, Rows rows);
// With rows as they cost less.
TileCode compile_tile(const TileSpec& spec);

// Joins the kernels of trace updates among the actions.
void join_traces(TileCode& code);
// Those that no signal meets: one kernel instead of one or two, which pays where several
// rows run at once.
void join_unmet_traces(TileCode& code);

// Sets `by_rows` where nothing but traces is to be done, and the coefficients of each are
// the same for all rows.
void prepare_rows(TileCode& code);
// Rows of such a program at `count` positions of a loop around it, few rows at a time at
// all of them. Bytes from one position to the next: per input, then per output.
struct RowRange {
  std::int64_t first, last;
  int action = -1;  // -1: all, one after the other
};
struct LoopAround {
  std::int64_t count = 1;
  std::span<const std::int64_t> bytes = {};
};
void run_rows(const TileCode& code, RowRange rows, const LoopAround& loop,
              std::span<const void* const> inputs, std::span<void* const> outputs);

}  // namespace braintrace
