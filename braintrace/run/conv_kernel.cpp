// SPDX-License-Identifier: Apache-2.0
// Convolution as products: what a run of output positions sees of x is laid out as rows
// and multiplied by the kernel. Images whose positions lie together are convolved as they
// lie, row by row (conv_planes.h).
#include <algorithm>
#include <cstring>
#include <vector>

#include "braintrace/base/divide.h"
#include "braintrace/base/error.h"
#include "braintrace/run/conv_kernel_impl.h"
#include "braintrace/run/gemm_impl.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
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

// Of an image or a window of one or two axes: rows and columns.
struct Area {
  std::int64_t rows, columns;
};
std::optional<Area> area_of(const Shape& axes) {
  if (axes.size() == 1) return Area{1, axes[0]};
  if (axes.size() == 2) return Area{axes[0], axes[1]};
  return std::nullopt;
}

bool are_all(const Ints& values, std::int64_t wanted) {
  return std::all_of(values.begin(), values.end(),
                     [&](std::int64_t v) { return v == wanted; });
}
bool goes_by_ones(const ConvGeometry& g) {
  const auto none_below_zero = [](const Ints& pads) {
    return std::all_of(pads.begin(), pads.end(), [](std::int64_t v) { return v >= 0; });
  };
  return are_all(g.strides, 1) && are_all(g.input_dilation, 1) &&
         are_all(g.kernel_dilation, 1) && none_below_zero(g.pad_low) &&
         none_below_zero(g.pad_high);
}

struct SpatialAxes {
  Shape in, window, out;

  explicit SpatialAxes(const ConvSpec& s) {
    const auto spatial = static_cast<std::ptrdiff_t>(s.geometry.strides.size());
    in.assign(s.x.end() - 1 - spatial, s.x.end() - 1);
    window.assign(s.kernel.begin(), s.kernel.begin() + spatial);
    out.assign(s.y.end() - 1 - spatial, s.y.end() - 1);
  }
};

bool fills_vectors(const ConvSpec& s, std::int64_t columns) {
  constexpr std::size_t kVectorBytes = 64;
  return 2 * static_cast<std::size_t>(columns) * size_of(s.dtype) >= kVectorBytes;
}

// So many channels as planes: nullopt where positions do not go by ones, and where padded
// planes do not fit the room of a thread.
std::optional<PlaneConv> by_planes(const ConvSpec& s, const SpatialAxes& axes,
                                   std::int64_t channels) {
  constexpr std::size_t kPlaneRoom = std::size_t{1} << 19;
  const auto w = area_of(axes.window), y = area_of(axes.out);
  if (!w || !y || !goes_by_ones(s.geometry) || channels == 0 ||
      num_elements(axes.in) == 0 || num_elements(axes.out) == 0)
    return std::nullopt;
  const PlaneConv p{.dtype = s.dtype,
                    .channels = channels,
                    .window_rows = w->rows,
                    .window_columns = w->columns,
                    .rows = y->rows,
                    .columns = y->columns};
  const auto elements =
      static_cast<std::size_t>(p.channels * p.padded_plane() + kPlaneSlack);
  return elements * size_of(s.dtype) <= kPlaneRoom ? std::optional(p) : std::nullopt;
}

// When results lie as planes and vectors of them are not mostly empty.
std::optional<PlaneConv> planes_of(const ConvSpec& s, const SpatialAxes& axes) {
  constexpr std::int64_t kFewPlaces = 32;
  const std::int64_t channels = s.x.back() / s.geometry.groups;
  const bool few = channels * num_elements(axes.window) <= kFewPlaces;
  if (!s.y_at || s.y_at->position != 1 || axes.out.empty() ||
      !(few || fills_vectors(s, axes.out.back())))
    return std::nullopt;
  return by_planes(s, axes, channels);
}

// Results of one image whose factors are planes, few enough to be summed one by one.
constexpr std::int64_t kFewResults = 64, kChannelsAtOnce = 8, kMostParts = 16;
std::optional<PlaneConv> sums_of(const ConvSpec& s, const SpatialAxes& axes) {
  const std::int64_t images =
      num_elements(std::span(s.x).first(s.x.size() - 1 - axes.in.size()));
  if (!s.x_at || s.x_at->position != 1 || !s.kernel_at || s.kernel_at->window != 1 ||
      images != 1 || num_elements(axes.out) > kFewResults || axes.window.empty() ||
      !fills_vectors(s, axes.window.back()))
    return std::nullopt;
  return by_planes(s, axes, std::min(kChannelsAtOnce, s.x.back() / s.geometry.groups));
}

ConvPlaces packed_places(const Shape& array, std::int64_t positions) {
  return {positions * array.back(), array.back(), 1};
}

}  // namespace

ConvKernel::ConvKernel(const ConvSpec& s) {
  BT_INVARIANT(is_float(s.dtype) && takes(s));
  const SpatialAxes axes(s);
  const auto& [in, window, out] = axes;
  Prepared p{.dtype = s.dtype};
  p.images =
      num_elements(std::span(s.x).first(s.x.size() - 1 - s.geometry.strides.size()));
  p.spatial_in = num_elements(in);
  p.channels = s.x.back();
  p.outputs = s.y.back();
  p.groups = s.geometry.groups;
  p.positions = num_elements(out);
  p.window = num_elements(window);
  p.x_at = s.x_at.value_or(packed_places(s.x, p.spatial_in));
  p.y_at = s.y_at.value_or(packed_places(s.y, p.positions));
  BT_INVARIANT(p.spatial_in < INT32_MAX);
  p.kernel_at = s.kernel_at;
  p.planes = s.kernel_at ? sums_of(s, axes) : planes_of(s, axes);
  if (p.planes) {
    const Ints& low = s.geometry.pad_low;
    p.in_columns = in.back();
    p.pad_row = low.size() == 2 ? low[0] : 0;
    p.pad_column = low.back();
  }
  if (p.planes && s.kernel_at) {
    p.parts = std::min(kMostParts, divided_up(p.channels / p.groups, kChannelsAtOnce));
    p.sums.resize(static_cast<std::size_t>(p.parts * p.positions * p.outputs) *
                  size_of(s.dtype));
    prepared_ = std::make_unique<Prepared>(std::move(p));
    return;
  }
  if (p.planes) {
    const std::int64_t places = p.window * (p.channels / p.groups);
    const std::int64_t blocks = divided_up(p.outputs / p.groups, kPlaneOutputs);
    p.weights.resize(
        static_cast<std::size_t>(p.groups * blocks * places * kPlaneOutputs) *
        size_of(s.dtype));
    prepared_ = std::make_unique<Prepared>(std::move(p));
    return;
  }
  p.met = met_places(s.geometry, in, window, out);
  // Rows of one tile share the scratch with the product.
  const auto piece = static_cast<std::size_t>(p.channels / p.groups) * size_of(s.dtype);
  constexpr std::size_t kRoom = ThreadPool::kScratchBytes - kGemmScratch;
  BT_REQUIRE_KIND(piece <= kRoom, ErrorKind::not_supported,
                  "ConvKernel: channels of more than 768 KB per group");
  const auto fit = static_cast<std::int64_t>(kRoom / std::max<std::size_t>(piece, 1));
  p.places = std::min(std::max<std::int64_t>(p.window, 1), fit);
  p.tile = std::max<std::int64_t>(
      1, std::min<std::int64_t>({fit / p.places, p.positions, 256}));
  prepared_ = std::make_unique<Prepared>(std::move(p));
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

void ConvKernel::run_rows(const void* x, const void* kernel, const void* bias, void* y,
                          ThreadPool& pool) const {
  const Prepared& p = *prepared_;
  const std::size_t element = size_of(p.dtype);
  const std::int64_t c = p.channels / p.groups, o = p.outputs / p.groups;
  const std::int64_t per_image = (p.positions + p.tile - 1) / p.tile;
  GemmSpec s{.dtype = p.dtype, .m = p.tile, .n = o, .k = p.window * c};
  s.a = {s.k, 1, 0};
  s.b = {p.outputs, 1, 0};
  s.c = {p.y_at.position, p.y_at.channel, 0};
  const auto past = [element](const void* base, std::int64_t n) {
    return static_cast<const std::byte*>(base) + n * static_cast<std::int64_t>(element);
  };
  const std::size_t piece = static_cast<std::size_t>(c) * element;
  const LayOut put = lay_out_for(piece);
  GemmSpec all = s;
  all.m = p.images * p.positions * p.groups;
  const auto tile = [&](std::int64_t t, int worker) {
    const std::int64_t image = t / per_image, first = t % per_image * p.tile;
    std::byte* rows = pool.scratch(worker) + kGemmScratch;
    // The places of the window from `from` on, of all positions of the tile.
    const auto product = [&](std::int64_t g, std::int64_t from) {
      GemmSpec part = s;
      part.m = std::min(p.tile, p.positions - first);
      const std::int64_t places = std::min(p.places, p.window - from);
      part.k = part.a.row = places * c;
      part.beta = from == 0 ? 0 : 1;
      const bool whole = places == p.window;  // then positions lie one after the other
      for (std::int64_t i = 0; i < (whole ? 1 : part.m); ++i)
        put(past(x, image * p.x_at.image + g * c * p.x_at.channel),
            p.met.data() + (first + i) * p.window + from,
            whole ? part.m * places : places,
            static_cast<std::size_t>(p.x_at.position) * element, piece,
            rows + static_cast<std::size_t>(i * places) * piece);
      const std::byte* to = past(
          y, image * p.y_at.image + first * p.y_at.position + g * o * p.y_at.channel);
      gemm_serial(part, rows, past(kernel, from * c * p.outputs + g * o),
                  const_cast<std::byte*>(to),
                  bias == nullptr || from > 0 ? nullptr : past(bias, g * o),
                  pool.scratch(worker));
    };
    for (std::int64_t g = 0; g < p.groups; ++g)
      for (std::int64_t from = 0; from < std::max<std::int64_t>(p.window, 1);
           from += p.places)
        product(g, from);
  };
  pool.for_tiles_if(gemm_ns(all) > kSharedWork, p.images * per_image, tile);
}

bool ConvKernel::takes(const ConvSpec& s) {
  if (s.kernel_at) return sums_of(s, SpatialAxes(s)).has_value();
  return !s.x_at || s.x_at->channel == 1 || s.x.back() == s.geometry.groups ||
         planes_of(s, SpatialAxes(s)).has_value();
}

void ConvKernel::run(const void* x, const void* kernel, const void* bias, void* y,
                     ThreadPool& pool) const {
  const Prepared& p = *prepared_;
  if (p.positions == 0 || p.outputs == 0 || p.images == 0) return;
  const auto way = !p.planes     ? &ConvKernel::run_rows
                   : p.kernel_at ? &ConvKernel::run_sums
                                 : &ConvKernel::run_planes;
  (this->*way)(x, kernel, bias, y, pool);
}

}  // namespace braintrace
