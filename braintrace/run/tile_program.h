// SPDX-License-Identifier: Apache-2.0
#pragma once
// A chain of element-by-element operations run block by block, so that what lies between
// inputs and outputs stays in the first-level cache. Rounds like OpDef::eval: results are
// bitwise those of the interpreter.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"
#include "braintrace/ir/lowering.h"

namespace braintrace {

class ThreadPool;

// Values are numbered: inputs first, in order, then one per step.
struct TileInput {
  DType dtype;
  Ints strides;  // in elements, one per loop axis; 0 repeats along the axis
};
struct TileStep {
  MicroOp op;
  DType dtype;  // of the result; operand types are those of their values
  std::vector<int> operands;
};
struct TileOutput {
  int value;
  Ints strides;  // no two positions may share an element
  // The input whose memory this output takes over, or -1. That input must have the same
  // dtype and strides, and no other input may overlap its memory.
  int in_place = -1;
};
struct TileSpec {
  Shape loop;  // any axes, also none; adjacent ones are merged where all strides allow
  std::vector<TileInput> inputs;
  std::vector<TileStep> steps;
  std::vector<TileOutput> outputs;
};

class TileProgram {
 public:
  // InternalError when the spec is not well formed. bf16 only in copy and convert.
  explicit TileProgram(const TileSpec& spec);
  ~TileProgram();
  TileProgram(TileProgram&&) noexcept;
  TileProgram& operator=(TileProgram&&) noexcept;

  // One pointer per input and output, to the element at loop position 0. Does not
  // allocate.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs,
           ThreadPool& pool) const;
  // The same on the calling thread, with the scratch of one worker: for kernels that make
  // their own tiles.
  void run_serial(std::span<const void* const> inputs, std::span<void* const> outputs,
                  std::byte* scratch) const;

  // Does this program gain from a loop around it that it knows? Then run_loop runs some
  // of its rows at `count` positions of one; `bytes` from one to the next, per input,
  // then per output.
  bool knows_loops() const;
  std::int64_t rows() const;  // of such a program: all axes but those of a row, merged
  struct Rows {
    std::int64_t first, last;
    int trace = -1;  // only this one, of those that do not touch each other
  };
  void run_loop(std::span<const void* const> inputs, std::span<void* const> outputs,
                Rows rows, std::int64_t count, std::span<const std::int64_t> bytes) const;
  // How many traces do not touch each other; 1 when some do. Who writes an output.
  int traces_apart() const;
  int trace_that_writes(int output) const;

  double work_ns() const;        // rough cost on one thread
  std::string describe() const;  // "4 steps over [16,256]: mul add tanh copy"

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

// True when a tile program can take the op on these operand and result types.
bool tile_supports(MicroOp op, DType operand, DType result);

}  // namespace braintrace
