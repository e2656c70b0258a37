// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a convolution is prepared for, whatever the way it runs.
#include <vector>

#include "braintrace/run/conv_kernel.h"
#include "braintrace/run/conv_planes.h"

namespace braintrace {

struct ConvKernel::Prepared {
  DType dtype;
  std::int64_t images, spatial_in, channels, outputs, groups, positions, window;
  std::int64_t tile = 0;    // positions per product
  std::int64_t places = 0;  // of the window per product
  ConvPlaces x_at, y_at;
  // Images by planes: of one group, and the weights as conv_planes wants them.
  std::optional<PlaneConv> planes = {};
  std::int64_t in_columns = 0, pad_row = 0, pad_column = 0;
  std::vector<std::byte> weights = {};
  // Kernels by planes: sums of parts of the channels, each results by position.
  std::optional<ConvKernelPlaces> kernel_at = {};
  std::int64_t parts = 0;
  std::vector<std::byte> sums = {};
  // Per position and place of the window: the spatial index of x met there, or -1.
  std::vector<std::int32_t> met;
};

}  // namespace braintrace
