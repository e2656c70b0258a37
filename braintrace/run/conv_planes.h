// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution of planes, as images are laid out: neighbouring positions lie together, so
// that a vector of results takes one load and one multiplication per place of the window.
// Steps of 1 everywhere.
#include <cstdint>

#include "braintrace/array/dtype.h"

namespace braintrace {

// Outputs one call computes, at most; weights lie by place of the window, channel,
// output.
inline constexpr std::int64_t kPlaneOutputs = 8;
// Elements behind padded planes that vectors may read, and do not use.
inline constexpr std::int64_t kPlaneSlack = 32;

struct PlaneConv {
  DType dtype = DType::f32;  // or f64
  std::int64_t channels, window_rows, window_columns;
  std::int64_t rows, columns;  // of a result
  std::int64_t padded_rows() const { return rows + window_rows - 1; }
  std::int64_t padded_columns() const { return columns + window_columns - 1; }
  std::int64_t padded_plane() const { return padded_rows() * padded_columns(); }
};

// y[o][r][c] = bias[o] + sum over places (i, j) and channels of
//   x[channel][r + i][c + j] * w[i][j][channel][o],  o < outputs <= kPlaneOutputs
// x: padded planes; planes of y lie `y_plane` elements apart. `bias` may be null.
struct PlaneOperands {
  const void *x, *w, *bias;
  void* y;
  std::int64_t outputs, y_plane;
};
void conv_planes(const PlaneConv& conv, const PlaneOperands& o);

// The same where the window is large and results are few, as in the gradient of a kernel:
// both factors are planes, multiplied along their rows.
//   y[r * columns + c][o] += sum over channels and places (i, j) of
//     x[channel][r + i][c + j] * k[channel][o][i][j],  o < outputs <= kPlaneOutputs
// x: padded planes. k: planes by channel and output, so many elements apart. Rows of y
// lie y_row elements apart.
struct PlaneSums {
  const void *x, *k;
  std::int64_t k_channel, k_output;
  void* y;
  std::int64_t outputs, y_row;
};
void sum_planes(const PlaneConv& conv, const PlaneSums& o);

}  // namespace braintrace
