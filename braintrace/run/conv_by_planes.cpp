// SPDX-License-Identifier: Apache-2.0
// Convolution of images as they lie, channel by channel, and sums of their products.
#include <algorithm>

#include "braintrace/base/divide.h"
#include "braintrace/run/conv_kernel_impl.h"
#include "braintrace/run/gemm.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

// The weights of a group, output by output, in blocks; those behind the last one are 0.
template <class T>
void lay_out_weights(const T* kernel, std::int64_t places, std::int64_t all_outputs,
                     std::int64_t outputs, T* to) {
  for (std::int64_t first = 0; first < outputs; first += kPlaneOutputs)
    for (std::int64_t k = 0; k < places; ++k, to += kPlaneOutputs)
      for (std::int64_t o = 0; o < kPlaneOutputs; ++o)
        to[o] = first + o < outputs ? kernel[k * all_outputs + first + o] : T(0);
}

// Channels of an image with zeros around them. `x`: the first one's position 0.
template <class T>
void pad_planes(const PlaneConv& c, std::int64_t rows, std::int64_t columns,
                std::int64_t pad_row, std::int64_t pad_column, const ConvPlaces& at,
                const T* x, T* to) {
  std::fill_n(to, c.channels * c.padded_plane(), T(0));
  for (std::int64_t channel = 0; channel < c.channels; ++channel)
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* from = x + channel * at.channel + r * columns * at.position;
      T* row = to + channel * c.padded_plane() + (r + pad_row) * c.padded_columns() +
               pad_column;
      if (at.position == 1)
        std::copy_n(from, columns, row);
      else
        for (std::int64_t i = 0; i < columns; ++i) row[i] = from[i * at.position];
    }
}

// Taken as a product of matrices.
bool is_shared(const GemmSpec& s) { return gemm_ns(s) > kSharedWork; }

}  // namespace

void ConvKernel::run_planes(const void* x, const void* kernel, const void* bias, void* y,
                            ThreadPool& pool) const {
  Prepared& p = *prepared_;
  const PlaneConv& conv = *p.planes;
  const std::int64_t outputs = p.outputs / p.groups, places = p.window * conv.channels;
  const std::int64_t block = places * kPlaneOutputs;
  const std::int64_t blocks = divided_up(outputs, kPlaneOutputs);
  const bool shared = is_shared(
      {.dtype = p.dtype, .m = p.images * p.positions, .n = p.outputs, .k = places});
  const auto as = [&]<class T>(T) {
    T* const weights = reinterpret_cast<T*>(p.weights.data());
    for (std::int64_t g = 0; g < p.groups; ++g)
      lay_out_weights(static_cast<const T*>(kernel) + g * outputs, places, p.outputs,
                      outputs, weights + g * blocks * block);
    const auto image = [&](std::int64_t t, int worker) {
      const std::int64_t i = t / p.groups, g = t % p.groups;
      T* const padded = reinterpret_cast<T*>(pool.scratch(worker));
      pad_planes(conv, p.spatial_in / p.in_columns, p.in_columns, p.pad_row, p.pad_column,
                 p.x_at,
                 static_cast<const T*>(x) + i * p.x_at.image +
                     g * conv.channels * p.x_at.channel,
                 padded);
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t first = b * kPlaneOutputs, o = g * outputs + first;
        conv_planes(conv,
                    {.x = padded,
                     .w = weights + (g * blocks + b) * block,
                     .bias = bias == nullptr ? nullptr : static_cast<const T*>(bias) + o,
                     .y = static_cast<T*>(y) + i * p.y_at.image + o * p.y_at.channel,
                     .outputs = std::min(kPlaneOutputs, outputs - first),
                     .y_plane = p.y_at.channel});
      }
    };
    pool.for_tiles_if(shared, p.images * p.groups, image);
  };
  p.dtype == DType::f32 ? as(float()) : as(double());
}

// Parts of the channels by themselves, then their sums: cut by shape alone.
void ConvKernel::run_sums(const void* x, const void* kernel, const void* bias, void* y,
                          ThreadPool& pool) const {
  Prepared& p = *prepared_;
  const std::int64_t channels = p.channels / p.groups, outputs = p.outputs / p.groups;
  const std::int64_t results = p.positions * outputs;  // of a part
  const bool shared = is_shared(
      {.dtype = p.dtype, .m = p.positions, .n = p.outputs, .k = p.window * channels});
  const auto as = [&]<class T>(T) {
    T* const sums = reinterpret_cast<T*>(p.sums.data());
    const auto part = [&](std::int64_t t, int worker) {
      const std::int64_t g = t / p.parts, first = t % p.parts * channels / p.parts,
                         last = (t % p.parts + 1) * channels / p.parts;
      T* const padded = reinterpret_cast<T*>(pool.scratch(worker));
      T* const to = sums + t * results;
      std::fill_n(to, results, T(0));
      PlaneConv conv = *p.planes;
      for (std::int64_t c = first; c < last; c += conv.channels) {
        conv.channels = std::min(p.planes->channels, last - c);
        pad_planes(conv, p.spatial_in / p.in_columns, p.in_columns, p.pad_row,
                   p.pad_column, p.x_at,
                   static_cast<const T*>(x) + (g * channels + c) * p.x_at.channel,
                   padded);
        for (std::int64_t o = 0; o < outputs; o += kPlaneOutputs)
          sum_planes(conv,
                     {.x = padded,
                      .k = static_cast<const T*>(kernel) + c * p.kernel_at->channel +
                           (g * outputs + o) * p.kernel_at->output,
                      .k_channel = p.kernel_at->channel,
                      .k_output = p.kernel_at->output,
                      .y = to + o,
                      .outputs = std::min(kPlaneOutputs, outputs - o),
                      .y_row = outputs});
      }
    };
    pool.for_tiles_if(shared, p.groups * p.parts, part);
    for (std::int64_t i = 0; i < p.positions; ++i)
      for (std::int64_t o = 0; o < p.outputs; ++o) {
        const T* from =
            sums + o / outputs * p.parts * results + i * outputs + o % outputs;
        T sum = bias == nullptr ? T(0) : static_cast<const T*>(bias)[o];
        for (std::int64_t k = 0; k < p.parts; ++k) sum += from[k * results];
        static_cast<T*>(y)[i * p.y_at.position + o * p.y_at.channel] = sum;
      }
  };
  p.dtype == DType::f32 ? as(float()) : as(double());
}

}  // namespace braintrace
