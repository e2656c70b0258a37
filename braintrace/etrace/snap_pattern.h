// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which positions a position can influence within n steps: the neighbour lists of
// SnAp(n).
#include <cstdint>
#include <string>
#include <vector>

#include "braintrace/array/shape.h"

namespace braintrace {

// One-step dependence per axis: axes[k][p * d + q] = position p may read position q.
struct AxisAdjacency {
  std::vector<std::vector<bool>> axes;
  bool conservative = false;
  std::string reason;
};

struct SnapPattern {
  std::int64_t n = 1;
  Shape varshape;
  AxisAdjacency adjacency;                            // closed over n steps
  std::vector<std::vector<std::int64_t>> neighbours;  // (P, K), own position first
  std::vector<std::vector<bool>> valid;               // (P, K), false = padding
  bool conservative = false;
  std::string reason;

  std::int64_t num_position() const {
    return static_cast<std::int64_t>(neighbours.size());
  }
  std::int64_t num_neighbour() const;
  bool is_degenerate() const { return num_neighbour() == 1; }
  bool is_saturated() const;
};

// OR of A^0 .. A^(n-1) per axis. UserError when n < 1.
AxisAdjacency close_adjacency(const AxisAdjacency& a, const Shape& varshape,
                              std::int64_t n);

// Positions of one colour are read by no common position, so that one product with a
// vector that is 1 on all of them gives the Jacobian's columns of each.
struct ColumnColours {
  std::int64_t count = 1;
  std::vector<std::int64_t> of;  // per flat position
};
ColumnColours column_colours(const AxisAdjacency& one_step, const Shape& varshape);
// May position p read position q (flat)?
bool may_read(const AxisAdjacency& a, const Shape& varshape, std::int64_t p,
              std::int64_t q);

// Neighbours of p are the positions p influences (columns), own position first, the
// others ascending; rows are padded to the longest with p itself.
SnapPattern snap_pattern(const AxisAdjacency& one_step, const Shape& varshape,
                         std::int64_t n);

}  // namespace braintrace
