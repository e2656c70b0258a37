// SPDX-License-Identifier: Apache-2.0
// Convolution as products: what a run of output positions sees of x is laid out as rows
// and multiplied by the kernel.
#include "braintrace/run/conv_kernel.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "braintrace/base/error.h"
#include "braintrace/run/gemm_impl.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {

struct ConvKernel::Prepared {
  DType dtype;
  std::int64_t images, spatial_in, channels, outputs, groups, positions, window;
  std::int64_t tile;  // positions per product
  // Per position and place of the window: the spatial index of x met there, or -1.
  std::vector<std::int32_t> met;
};

namespace {

// Along one axis: the input index that output p and window offset u meet, or -1.
std::int64_t met_along(const ConvGeometry& g, std::size_t axis, std::int64_t n,
                       std::int64_t p, std::int64_t u) {
  const std::int64_t at =
      p * g.strides[axis] + u * g.kernel_dilation[axis] - g.pad_low[axis];
  if (at < 0 || at % g.input_dilation[axis] != 0) return -1;
  const std::int64_t i = at / g.input_dilation[axis];
  return i < n ? i : -1;
}

// Row-major position `flat` of `shape`.
Ints unflattened(std::int64_t flat, const Shape& shape) {
  Ints at(shape.size());
  for (std::size_t a = shape.size(); a-- > 0; flat /= shape[a]) at[a] = flat % shape[a];
  return at;
}

std::vector<std::int32_t> met_places(const ConvGeometry& g, const Shape& in,
                                     const Shape& window, const Shape& out) {
  const std::int64_t positions = num_elements(out), places = num_elements(window);
  std::vector<std::int32_t> met;
  met.reserve(static_cast<std::size_t>(positions * places));
  for (std::int64_t i = 0; i < positions * places; ++i) {
    const Ints p = unflattened(i / places, out), u = unflattened(i % places, window);
    std::int64_t x = 0;
    for (std::size_t a = 0; a < in.size() && x >= 0; ++a) {
      const std::int64_t along = met_along(g, a, in[a], p[a], u[a]);
      x = along < 0 ? -1 : x * in[a] + along;
    }
    met.push_back(static_cast<std::int32_t>(x));
  }
  return met;
}

}  // namespace

ConvKernel::ConvKernel(const ConvSpec& s) {
  BT_INVARIANT(is_float(s.dtype));
  const auto spatial = static_cast<std::ptrdiff_t>(s.geometry.strides.size());
  const Shape in(s.x.end() - 1 - spatial, s.x.end() - 1);
  const Shape window(s.kernel.begin(), s.kernel.begin() + spatial);
  const Shape out(s.y.end() - 1 - spatial, s.y.end() - 1);
  Prepared p{.dtype = s.dtype};
  p.images = num_elements(Shape(s.x.begin(), s.x.end() - 1 - spatial));
  p.spatial_in = num_elements(in);
  p.channels = s.x.back();
  p.outputs = s.y.back();
  p.groups = s.geometry.groups;
  p.positions = num_elements(out);
  p.window = num_elements(window);
  BT_INVARIANT(p.spatial_in < INT32_MAX);
  p.met = met_places(s.geometry, in, window, out);
  // Rows of one tile share the scratch with the product.
  const auto row =
      static_cast<std::size_t>(p.window * p.channels / p.groups) * size_of(s.dtype);
  constexpr std::size_t kRoom = ThreadPool::kScratchBytes - kGemmScratch;
  BT_REQUIRE_KIND(row <= kRoom, ErrorKind::not_supported,
                  "ConvKernel: a window of more than 960 KB per group");
  const auto fit = static_cast<std::int64_t>(kRoom / std::max<std::size_t>(row, 1));
  p.tile = std::max<std::int64_t>(1, std::min<std::int64_t>({fit, p.positions, 256}));
  prepared_ = std::make_unique<const Prepared>(std::move(p));
}

ConvKernel::~ConvKernel() = default;
ConvKernel::ConvKernel(ConvKernel&&) noexcept = default;
ConvKernel& ConvKernel::operator=(ConvKernel&&) noexcept = default;

namespace {

// Pieces of one size, known when this is compiled (0: given), from the places of x that
// are met.
template <std::size_t kPiece>
void lay_out(const std::byte* x, const std::int32_t* met, std::int64_t places,
             std::size_t step, std::size_t given, std::byte* rows) {
  const std::size_t piece = kPiece > 0 ? kPiece : given;
  for (std::int64_t i = 0; i < places; ++i, rows += piece) {
    if (met[i] < 0)
      std::memset(rows, 0, piece);
    else
      std::memcpy(rows, x + static_cast<std::size_t>(met[i]) * step, piece);
  }
}
using LayOut = decltype(&lay_out<0>);

// Few channels are common, and a call of memcpy for each would take most of the time.
LayOut lay_out_for(std::size_t piece) {
  switch (piece) {
    case 4:
      return lay_out<4>;
    case 8:
      return lay_out<8>;
    case 16:
      return lay_out<16>;
    case 32:
      return lay_out<32>;
    case 64:
      return lay_out<64>;
    default:
      return lay_out<0>;
  }
}

}  // namespace

void ConvKernel::run(const void* x, const void* kernel, const void* bias, void* y,
                     ThreadPool& pool) const {
  const Prepared& p = *prepared_;
  if (p.positions == 0 || p.outputs == 0) return;
  const std::size_t element = size_of(p.dtype);
  const std::int64_t c = p.channels / p.groups, o = p.outputs / p.groups;
  const std::int64_t per_image = (p.positions + p.tile - 1) / p.tile;
  GemmSpec s{.dtype = p.dtype, .m = p.tile, .n = o, .k = p.window * c};
  s.a = {s.k, 1, 0};
  s.b = {p.outputs, 1, 0};
  s.c = {p.outputs, 1, 0};
  const auto past = [element](const void* base, std::int64_t n) {
    return static_cast<const std::byte*>(base) + n * static_cast<std::int64_t>(element);
  };
  const std::size_t piece = static_cast<std::size_t>(c) * element;
  const LayOut put = lay_out_for(piece);
  GemmSpec all = s;
  all.m = p.images * p.positions * p.groups;
  const auto tile = [&](std::int64_t t, int worker) {
    const std::int64_t image = t / per_image, first = t % per_image * p.tile;
    GemmSpec part = s;
    part.m = std::min(p.tile, p.positions - first);
    std::byte* rows = pool.scratch(worker) + kGemmScratch;
    for (std::int64_t g = 0; g < p.groups; ++g) {
      put(past(x, image * p.spatial_in * p.channels + g * c),
          p.met.data() + first * p.window, part.m * p.window,
          static_cast<std::size_t>(p.channels) * element, piece, rows);
      const std::byte* to = past(y, (image * p.positions + first) * p.outputs + g * o);
      gemm_serial(part, rows, past(kernel, g * o), const_cast<std::byte*>(to),
                  bias == nullptr ? nullptr : past(bias, g * o), pool.scratch(worker));
    }
  };
  pool.for_tiles_if(gemm_ns(all) > kSharedWork, p.images * per_image, tile);
}

}  // namespace braintrace
