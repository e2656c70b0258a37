// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a plan is made of: buffers, and steps that read and write views of them.
#include <limits>
#include <memory>
#include <optional>
#include <variant>

#include "braintrace/ir/op_def.h"
#include "braintrace/run/conv_kernel.h"
#include "braintrace/run/fused_sum.h"
#include "braintrace/run/gather_kernel.h"
#include "braintrace/run/gemm.h"
#include "braintrace/run/plan_view.h"
#include "braintrace/run/reduce_kernel.h"
#include "braintrace/run/sparse_kernel.h"
#include "braintrace/run/strided_copy.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/run/tile_program.h"

namespace braintrace::plan {

enum class Place : std::uint8_t {
  arena,     // lives from its first to its last step
  input,     // the caller's
  output,    // the caller's
  constant,  // the plan's own
  slot,      // moved from step to step by a loop
};

inline constexpr int kNever = std::numeric_limits<int>::max();

struct Buffer {
  Place place = Place::arena;
  std::int64_t bytes = 0;
  std::size_t index = 0;  // of the input or output
  Array constant = {};
  int depth = 0;  // of the loop it belongs to; 0 = the program itself
  // Times are numbers of steps, loop bodies counted once.
  int first = kNever, last = -1;
  int first_write = kNever, last_read = -1;
  std::int64_t offset = 0;  // in the arena
  int takes_over = -1;      // arena: the buffer whose memory it goes on with
};

struct Step;
struct Block {
  std::vector<Step> steps;
};

struct CopyStep {
  View from, to;
  StridedCopy copy;
};
// One number everywhere.
struct FillStep {
  View to;        // packed
  Array element;  // of its type
};
// A chain of element-by-element ops in one pass, perhaps with sums of it.
struct FusedStep {
  TileSpec chain;
  std::variant<TileProgram, FusedSum> program;
  std::vector<View> in, out;
  std::vector<const void*> in_memory;  // where the views are in this run
  std::vector<void*> out_memory;
};
struct GemmStep {
  GemmSpec spec;
  View a, b, c;
  std::optional<View> bias = {};
  bool packed_b = false;  // b is as pack_b leaves it, or as tile_b does for events
  bool events = false;    // a may be mostly zero
};
struct PackStep {
  GemmSpec spec;
  View b, to;
  bool events = false;
};
// Kernels on packed arrays with one output.
struct GatherKernel {
  PickSpec spec;
};
struct ScatterKernel {
  PickSpec spec;
};
using PackedKernel = std::variant<ReduceKernel, ConvKernel, GatherKernel, ScatterKernel,
                                  SparseKernel, SparseOuterKernel>;
struct KernelStep {
  PackedKernel kernel;
  std::vector<View> in;
  View out;
};
// Any op, by its own eval. Inputs and outputs are packed.
struct EvalStep {
  const OpDef* op;
  Attrs attrs;
  std::vector<View> in, out;
  std::vector<Array> in_arrays, out_arrays;  // windows, moved to the views at each run
  std::shared_ptr<void> reader;  // shares the inputs, so eval cannot write them
};

// How a value goes from one turn of a loop to the next. `now` and `next` are slots.
struct Carry {
  int now = -1, next = -1;
  View init, result;  // packed
  int spare = -1;     // the other buffer when a turn may not overwrite what it reads
  int stacked = -1;   // the y that is this value; then `next` is not used
  int entered = -1;   // the y that is this value before the turn: both lie there
  std::int64_t bytes = 0;
};
// A slot that walks along a stacked view.
struct Walk {
  int slot = -1;
  View stacked;
  std::int64_t stride = 0;  // in bytes
};
// Where every buffer is right now.
struct Frame {
  std::vector<std::byte*> base;
  ThreadPool* pool = nullptr;
  bool profile = false;  // steps note their time
  std::byte* at(const View& v) const {
    return base[static_cast<std::size_t>(v.buffer)] +
           v.offset * static_cast<std::int64_t>(size_of(v.dtype));
  }
};

// A loop whose turns work position by position along axis 0 of all they write: parts of
// the axis run through all turns by themselves, one thread each.
struct SlicedBody {
  struct Piece {
    std::unique_ptr<TileProgram> whole, last;  // of a full part, of the last one
    std::vector<View> in, out;
    std::optional<GemmStep> product = {};  // instead: a is in[0], c is out[0]
  };
  std::vector<Piece> pieces;  // one per step of the body
  std::int64_t size = 0, part = 0, parts = 0;
  double work_ns = 0;  // of one turn
  // Cut for threads, not for the cache, and with the bits of the whole: one thread does
  // better with the body as it is.
  bool only_shared = false;
  // Of each part: its own slots, and what a piece is given.
  struct Room {
    Frame frame;
    std::vector<const void*> in;
    std::vector<void*> out;
  };
  std::vector<Room> rooms;
};
struct ScanStep {
  std::int64_t length = 0;
  bool reverse = false;
  std::vector<Carry> carry;
  std::vector<Walk> xs, ys;
  std::unique_ptr<Block> body;
  std::optional<SlicedBody> sliced = {};
};
struct WhileStep {
  View predicate;
  std::vector<Carry> carry;
  std::unique_ptr<Block> condition, body;
};
struct CondStep {
  View predicate;
  std::unique_ptr<Block> if_true, if_false;
};

struct Step {
  std::variant<CopyStep, FillStep, FusedStep, GemmStep, PackStep, KernelStep, EvalStep,
               ScanStep, WhileStep, CondStep>
      kind;
  // When the frame says so: how often it ran, how long in all and at best.
  std::int64_t runs = 0, ns = 0, best_ns = std::numeric_limits<std::int64_t>::max();
};

struct Program {
  std::vector<Buffer> buffers;
  Block top;
  std::int64_t arena_bytes = 0;
  std::vector<int> in_place_of;  // by output: the input whose memory it may take, or -1
};

// `outputs[o]` may take over the memory of input i for (i, o) in `in_place`.
Program make_program(const Graph& g,
                     std::span<const std::pair<std::size_t, std::size_t>> in_place);
// The body of a loop cut along axis 0, when that is worth it and nothing goes from one
// part to another. Its own buffers may then not share memory.
std::optional<SlicedBody> sliced_body(const Block& body, const std::vector<Carry>& carry,
                                      std::int64_t length);
// Points the slots of a loop at the values of its turn k.
void set_slots(const ScanStep& s, Frame& f, std::int64_t k);
void run_sliced(ScanStep& s, Frame& f);
// Gives arena buffers that live at the same time different places.
void lay_out_arena(Program& p);
void run_block(Block& b, Frame& f);
std::string describe(const Program& p);

}  // namespace braintrace::plan
