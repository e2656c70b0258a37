// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/conv_geometry.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/product.h"

namespace braintrace {
namespace {

// Keeps every product of sizes far from overflow.
constexpr std::int64_t kLimit = std::int64_t{1} << 20;

void check_list(std::string_view who, std::string_view name, const Ints& v,
                std::int64_t spatial_rank, std::int64_t least) {
  BT_REQUIRE(static_cast<std::int64_t>(v.size()) == spatial_rank,
             fmt::format("{}: {} needs {} entries, got {}", who, name, spatial_rank,
                         to_string(v)));
  for (std::int64_t e : v)
    BT_REQUIRE(e >= least && e <= kLimit,
               fmt::format("{}: {} must be between {} and {}, got {}", who, name, least,
                           kLimit, to_string(v)));
}

void check_geometry(std::string_view who, const ConvGeometry& g, std::int64_t rank) {
  check_list(who, "strides", g.strides, rank, 1);
  check_list(who, "input_dilation", g.input_dilation, rank, 1);
  check_list(who, "kernel_dilation", g.kernel_dilation, rank, 1);
  check_list(who, "pad_low", g.pad_low, rank, -kLimit);
  check_list(who, "pad_high", g.pad_high, rank, -kLimit);
  BT_REQUIRE(g.groups >= 1,
             fmt::format("{}: groups must be at least 1, got {}", who, g.groups));
}

void check_channels(std::string_view who, const Type& x, const Type& kernel,
                    std::int64_t groups) {
  const std::int64_t channels = x.shape.back(), outputs = kernel.shape.back();
  const std::int64_t per_group = kernel.shape[kernel.shape.size() - 2];
  BT_REQUIRE(channels % groups == 0 && outputs % groups == 0,
             fmt::format("{}: {} groups must divide {} input and {} output channels", who,
                         groups, channels, outputs));
  BT_REQUIRE(channels / groups == per_group,
             fmt::format("{}: kernel {} must have {} channels per group for x {} in {} "
                         "groups",
                         who, to_string(kernel.shape), channels / groups,
                         to_string(x.shape), groups));
}

// Which input elements each output element meets: index pairs (x, kernel), counted over
// the spatial axes alone.
struct Meeting {
  std::int64_t x, kernel;
};

// Along one axis: the input index that output p and kernel offset u meet, or -1.
std::int64_t meets(const ConvGeometry& g, std::size_t axis, std::int64_t n,
                   std::int64_t p, std::int64_t u) {
  const std::int64_t at =
      p * g.strides[axis] + u * g.kernel_dilation[axis] - g.pad_low[axis];
  if (at < 0 || at % g.input_dilation[axis] != 0) return -1;
  const std::int64_t i = at / g.input_dilation[axis];
  return i < n ? i : -1;
}

// Odometer step through a shape; false after the last position.
bool advance(Ints& position, const Shape& shape) {
  for (std::size_t a = shape.size(); a-- > 0;) {
    if (++position[a] < shape[a]) return true;
    position[a] = 0;
  }
  return false;
}

std::vector<Meeting> meetings(const ConvGeometry& g, const Shape& in, const Shape& kernel,
                              const Ints& p) {
  std::vector<Meeting> found;
  Ints u(kernel.size(), 0);
  std::int64_t offset = 0;
  do {
    std::int64_t x = 0;
    bool inside = true;
    for (std::size_t a = 0; a < in.size() && inside; ++a) {
      const std::int64_t i = meets(g, a, in[a], p[a], u[a]);
      inside = i >= 0;
      x = x * in[a] + i;
    }
    if (inside) found.push_back({x, offset});
    ++offset;
  } while (advance(u, kernel));
  return found;
}

struct Sizes {
  std::int64_t spatial_in, channels, outputs, groups;
};

// acc[o] = sum of x[.., c] k[.., c, o] over the meetings of one output position.
template <class T>
void accumulate_conv_geometry(const T* x, const T* kernel,
                              const std::vector<Meeting>& met, const Sizes& z,
                              std::vector<double>& acc) {
  const std::int64_t c = z.channels / z.groups, o = z.outputs / z.groups;
  std::fill(acc.begin(), acc.end(), 0.0);
  for (const Meeting& m : met) {
    for (std::int64_t i = 0; i < z.channels; ++i) {
      const double v = static_cast<double>(x[m.x * z.channels + i]);
      const T* row = kernel + (m.kernel * c + i % c) * z.outputs;
      for (std::int64_t j = i / c * o, end = j + o; j < end; ++j)
        acc[static_cast<std::size_t>(j)] += v * static_cast<double>(row[j]);
    }
  }
}

template <class T>
void convolve(const Array& x, const Array& kernel, const ConvGeometry& g, Array& y) {
  const auto spatial = static_cast<std::ptrdiff_t>(g.strides.size());
  const Shape in(x.shape().end() - 1 - spatial, x.shape().end() - 1);
  const Shape window(kernel.shape().begin(), kernel.shape().begin() + spatial);
  const Shape positions(y.shape().end() - 1 - spatial, y.shape().end() - 1);
  const Sizes z{num_elements(in), x.shape().back(), y.shape().back(), g.groups};
  const std::int64_t num_positions = num_elements(positions);
  const std::int64_t lead = y.size() == 0 ? 0 : y.size() / (num_positions * z.outputs);
  if (lead == 0) return;
  T* out = y.mutable_data<T>();
  std::vector<double> acc(static_cast<std::size_t>(z.outputs));
  Ints p(positions.size(), 0);
  std::int64_t at = 0;
  do {
    const std::vector<Meeting> met = meetings(g, in, window, p);
    for (std::int64_t n = 0; n < lead; ++n) {
      accumulate_conv_geometry(x.data<T>() + n * z.spatial_in * z.channels,
                               kernel.data<T>(), met, z, acc);
      T* to = out + (n * num_positions + at) * z.outputs;
      for (std::size_t o = 0; o < acc.size(); ++o) to[o] = static_cast<T>(acc[o]);
    }
    ++at;
  } while (advance(p, positions));
}

}  // namespace

ConvGeometry geometry_of(const Attrs& a) {
  return {a.ints("strides"),        a.ints("pad_low"),         a.ints("pad_high"),
          a.ints("input_dilation"), a.ints("kernel_dilation"), a.integer("groups")};
}

Attrs to_attrs(const ConvGeometry& g) {
  return {{"groups", g.groups},
          {"input_dilation", g.input_dilation},
          {"kernel_dilation", g.kernel_dilation},
          {"pad_high", g.pad_high},
          {"pad_low", g.pad_low},
          {"strides", g.strides}};
}

ConvGeometry completed(ConvGeometry g, std::int64_t spatial_rank) {
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(spatial_rank, 0));
  for (Ints* v : {&g.strides, &g.input_dilation, &g.kernel_dilation})
    if (v->empty()) v->assign(n, 1);
  for (Ints* v : {&g.pad_low, &g.pad_high})
    if (v->empty()) v->assign(n, 0);
  return g;
}

std::int64_t dilated(std::int64_t n, std::int64_t dilation) {
  return n == 0 ? 0 : (n - 1) * dilation + 1;
}

Type conv_type(std::string_view who, const Type& x, const Type& kernel,
               const ConvGeometry& g) {
  BT_REQUIRE_KIND(x.dtype == kernel.dtype && is_float(x.dtype), ErrorKind::type,
                  fmt::format("{}: needs floats of one type, got {} and {}", who,
                              to_string(x), to_string(kernel)));
  const std::int64_t spatial = kernel.rank() - 2;
  BT_REQUIRE(spatial >= 1 && spatial <= 3,
             fmt::format("{}: kernel must be [*spatial, channels, outputs] with 1 to 3 "
                         "spatial axes, got {}",
                         who, to_string(kernel.shape)));
  BT_REQUIRE(x.rank() > spatial,
             fmt::format("{}: x {} has too few axes for {} spatial ones and channels",
                         who, to_string(x.shape), spatial));
  check_geometry(who, g, spatial);
  check_channels(who, x, kernel, g.groups);
  Type y = x;
  const std::int64_t lead = x.rank() - spatial - 1;
  for (std::int64_t a = 0; a < spatial; ++a) {
    const auto i = static_cast<std::size_t>(a);
    BT_REQUIRE(kernel.shape[i] >= 1, fmt::format("{}: kernel {} has an empty window", who,
                                                 to_string(kernel.shape)));
    const std::int64_t room = dilated(dim(x.shape, lead + a), g.input_dilation[i]) +
                              g.pad_low[i] + g.pad_high[i] -
                              dilated(kernel.shape[i], g.kernel_dilation[i]);
    y.shape[static_cast<std::size_t>(lead + a)] = room < 0 ? 0 : room / g.strides[i] + 1;
  }
  y.shape.back() = kernel.shape.back();
  return y;
}

void run_conv(const Array& x, const Array& kernel, const ConvGeometry& g, Array& y) {
  if (y.dtype() == DType::f64) return convolve<double>(x, kernel, g, y);
  convolve<float>(x, kernel, g, y);
}

}  // namespace braintrace
