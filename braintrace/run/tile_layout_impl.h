// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop nest of a tile program: merged axes, blocks, and how operands are reached.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "braintrace/array/shape.h"

namespace braintrace {

// Positions are numbered row-major over `shape`. Blocks are runs of positions. With long
// rows a block lies inside one row (the last axis); with short rows it holds whole rows.
struct TileLayout {
  Shape shape;                // merged axes, none of size 1
  std::vector<Ints> strides;  // per operand
  std::int64_t size = 1;      // positions
  std::int64_t row = 1;       // length of the last axis
  std::int64_t block = 1;     // positions per block, at most
  bool inside_rows = true;    // blocks do not cross rows

  std::int64_t blocks_per_row() const { return (row + block - 1) / block; }
  std::int64_t num_blocks() const;
  struct Run {
    std::int64_t start, size;
  };
  Run run(std::int64_t index) const;  // positions of a block
};

// `block` is the wished number of positions per block. Rows that are neither long nor
// short lie together in blocks, or each by itself; so do short ones where a row is one
// call (a single kernel, or the update of traces).
enum class Rows : std::uint8_t { together, apart, apart_for_one_kernel };
TileLayout tile_layout(const Shape& loop, const std::vector<Ints>& strides,
                       std::int64_t block, Rows rows);

// How an operand is reached from the positions of a block.
enum class Access : std::uint8_t {
  direct,   // consecutive elements: a pointer will do
  scalar,   // one element for the whole block
  fixed,    // the same elements for every block: gathered once
  strided,  // gathered for each block
};
Access access_of(const TileLayout& layout, std::size_t operand);

// Element offset of a position.
std::int64_t offset_of(const TileLayout& layout, const Ints& strides, std::int64_t at);

// Fills packed scratch with one number.
void spread_number(const std::byte* number, std::byte* packed, std::size_t n,
                   std::size_t element);

// Copies the block's elements between strided memory and packed scratch.
void gather_run(const TileLayout& layout, const Ints& strides, TileLayout::Run run,
                std::size_t element, const std::byte* from, std::byte* packed);
void scatter_run(const TileLayout& layout, const Ints& strides, TileLayout::Run run,
                 std::size_t element, const std::byte* packed, std::byte* to);

}  // namespace braintrace
