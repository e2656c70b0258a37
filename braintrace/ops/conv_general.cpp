// SPDX-License-Identifier: Apache-2.0
// Cross-correlation, channels last: y[n, p, o] = sum x[n, p stride + u, c] k[u, c, o].
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/conv_geometry.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/product.h"

namespace braintrace {
namespace {

std::vector<Type> infer_conv_general(std::span<const Type> in, const Attrs& attrs) {
  const Type y = conv_type("conv_general", in[0], in[1], geometry_of(attrs));
  BT_REQUIRE(in[0].rank() == in[1].rank(),
             fmt::format("conv_general: x must be [n, *spatial, channels] for kernel {}, "
                         "got {}",
                         to_string(in[1].shape), to_string(in[0].shape)));
  return {y};
}

void eval_conv_general(const Kernel& k) {
  run_conv(k.in[0], k.in[1], geometry_of(k.attrs), k.out[0]);
}

Lowering lower_conv_general(const Signature& s) {
  return lowering::Conv{geometry_of(s.attrs)};
}

// v with axis `axis` split into two of the given sizes.
Value split_axis(const Value& v, std::int64_t axis, std::int64_t outer,
                 std::int64_t inner) {
  Shape shape = v.shape();
  shape[static_cast<std::size_t>(axis)] = inner;
  shape.insert(shape.begin() + axis, outer);
  return reshape(v, shape);
}

// v with axes `axis` and `axis` + 1 joined into one.
Value join_axes(const Value& v, std::int64_t axis) {
  Shape shape = v.shape();
  const auto a = static_cast<std::size_t>(axis);
  shape[a] *= shape[a + 1];
  shape.erase(shape.begin() + axis + 1);
  return reshape(v, shape);
}

// [*k, c/g, o] -> [*k, o/g, c], flipped in space.
Value turned_kernel(const Value& kernel, std::int64_t spatial, std::int64_t groups) {
  const Value split = split_axis(flip(kernel, iota_ints(spatial)), spatial + 1, groups,
                                 kernel.dim(-1) / groups);  // *k, c/g, g, o/g
  Ints permutation = iota_ints(spatial + 3);
  std::swap(permutation[static_cast<std::size_t>(spatial)], permutation.back());
  return join_axes(transpose(split, permutation), spatial + 1);
}

// Every output element goes back to the inputs it was made of: a convolution of ct,
// spread by the strides, with the turned kernel.
Value x_cotangent(const Value& ct, const Value& kernel, const Shape& x,
                  const ConvGeometry& g) {
  ConvGeometry back = g;
  back.strides = g.input_dilation;
  back.input_dilation = g.strides;
  for (std::size_t a = 0; a < g.strides.size(); ++a) {
    const std::int64_t window = dilated(kernel.shape()[a], g.kernel_dilation[a]);
    back.pad_low[a] = window - 1 - g.pad_low[a];
    back.pad_high[a] = dilated(x[a + 1], g.input_dilation[a]) + window - 1 -
                       dilated(ct.shape()[a + 1], g.strides[a]) - back.pad_low[a];
  }
  const auto spatial = static_cast<std::int64_t>(g.strides.size());
  return conv_general(ct, turned_kernel(kernel, spatial, g.groups), back);
}

// One group: x correlated with ct, batch and channels in each other's role.
Value group_kernel_cotangent(const Value& ct, const Value& x,
                             const ConvGeometry& swapped) {
  const std::int64_t last = x.rank() - 1;
  const Value images = move_axis(move_to_front(x, last), 1, last);  // [c, *spatial, n]
  const Value window = move_axis(ct, 0, last - 1);                  // [*spatial, n, o]
  return move_axis(conv_general(images, window, swapped), 0, last - 1);
}

Value kernel_cotangent(const Value& ct, const Value& x, const Type& kernel,
                       const ConvGeometry& g) {
  if (ct.type().size() == 0) return zeros(kernel.shape, kernel.dtype);
  ConvGeometry swapped = g;
  swapped.groups = 1;
  swapped.strides = g.kernel_dilation;
  swapped.kernel_dilation = g.strides;
  for (std::size_t a = 0; a < g.strides.size(); ++a)
    swapped.pad_high[a] = dilated(ct.shape()[a + 1], g.strides[a]) -
                          dilated(x.shape()[a + 1], g.input_dilation[a]) +
                          dilated(kernel.shape[a], g.kernel_dilation[a]) - 1 -
                          g.pad_low[a];
  if (g.groups == 1) return group_kernel_cotangent(ct, x, swapped);
  const std::int64_t c = x.dim(-1) / g.groups, o = ct.dim(-1) / g.groups;
  Values parts;
  for (std::int64_t i = 0; i < g.groups; ++i)
    parts.push_back(group_kernel_cotangent(slice_axis(ct, -1, i * o, o),
                                           slice_axis(x, -1, i * c, c), swapped));
  return concat(parts, -1);
}

std::vector<Tangent> transpose_conv_general(const Site& s, std::span<const Tangent> ct) {
  std::vector<Tangent> result(2);
  if (!ct[0]) return result;
  const ConvGeometry g = geometry_of(s.attrs);
  if (s.is_linear(0)) result[0] = x_cotangent(*ct[0], s.in[1], s.in[0].shape(), g);
  if (s.is_linear(1)) result[1] = kernel_cotangent(*ct[0], s.in[0], s.in[1].type(), g);
  return result;
}

// Lanes of x are more images.
BatchResult batch_x(const Site& s, std::int64_t axis) {
  const Value x = move_to_front(s.in[0], axis);
  const std::int64_t lanes = x.dim(0), images = x.dim(1);
  const Value y = emit1(s.op, {join_axes(x, 0), s.in[1]}, s.attrs, s.loc);
  return {{split_axis(y, 0, lanes, images)}, {0}};
}

// Lanes of the kernel are more output channels of each group.
BatchResult batch_kernel(const Site& s, std::int64_t axis) {
  const std::int64_t groups = s.attrs.integer("groups"), last = s.in[0].rank() - 1;
  const Value kernel = move_to_front(s.in[1], axis);
  const std::int64_t lanes = kernel.dim(0), outputs = kernel.dim(-1) / groups;
  Value k = split_axis(kernel, last + 1, groups, outputs);  // lanes, *k, c/g, g, o/g
  k = move_axis(k, 0, last + 1);                            // *k, c/g, g, lanes, o/g
  k = join_axes(join_axes(k, last), last);                  // *k, c/g, o lanes
  Value y = emit1(s.op, {s.in[0], k}, s.attrs, s.loc);
  y = split_axis(split_axis(y, last, groups, lanes * outputs), last + 1, lanes, outputs);
  return {{join_axes(move_axis(y, last + 1, 0), last + 1)}, {0}};
}

// Lanes of both are groups of their own.
BatchResult batch_both_conv_general(const Site& s, std::int64_t x_axis,
                                    std::int64_t kernel_axis) {
  ConvGeometry g = geometry_of(s.attrs);
  const Value x = move_to_front(s.in[0], x_axis), k = move_to_front(s.in[1], kernel_axis);
  const std::int64_t lanes = x.dim(0), last = x.rank() - 2;
  if (lanes == 0) {  // no groups either
    const Shape images = x.shape(), window = k.shape();
    const Type lane_types[] = {{x.dtype(), {images.begin() + 1, images.end()}},
                               {k.dtype(), {window.begin() + 1, window.end()}}};
    Shape none = infer_types(s.op, lane_types, s.attrs)[0].shape;
    none.insert(none.begin(), 0);
    return {{zeros(none, x.dtype())}, {0}};
  }
  g.groups *= lanes;
  const Value y = emit1(
      s.op,
      {join_axes(move_axis(x, 0, last), last), join_axes(move_axis(k, 0, last), last)},
      to_attrs(g), s.loc);
  return {{move_axis(split_axis(y, last, lanes, k.dim(-1)), last, 0)}, {0}};
}

BatchResult batch_conv_general(const Site& s, std::span<const BatchAxis> axes) {
  if (axes[0] && axes[1]) return batch_both_conv_general(s, *axes[0], *axes[1]);
  return axes[0] ? batch_x(s, *axes[0]) : batch_kernel(s, *axes[1]);
}

PositionMap positions_conv_general(const Signature& s) {
  InputFlow x, kernel;
  const std::int64_t last = s.in[0].rank() - 1;
  x.axes.push_back({Flow::same, 0});
  kernel.axes.push_back({Flow::fresh, -1});
  for (std::int64_t a = 1; a < last; ++a) {
    x.axes.push_back({Flow::mixed, a});
    kernel.axes.push_back({Flow::mixed, a - 1});
  }
  x.axes.push_back({Flow::mixed, last});
  kernel.axes.push_back({Flow::same, last});
  return {{{x}, {kernel}}};
}

}  // namespace

const OpDef conv_general_op = {
    .name = "conv_general",
    .arity = 2,
    .attrs = {{"groups", AttrKind::integer},
              {"input_dilation", AttrKind::ints},
              {"kernel_dilation", AttrKind::ints},
              {"pad_high", AttrKind::ints},
              {"pad_low", AttrKind::ints},
              {"strides", AttrKind::ints}},
    .infer = infer_conv_general,
    .eval = eval_conv_general,
    .lower = lower_conv_general,
    .code =
        "conv_general($0, $1, {strides}, {pad_low}, {pad_high}, {input_dilation}, "
        "{kernel_dilation}, {groups})",
    .jvp = product_jvp,
    .transpose = transpose_conv_general,
    .batch = batch_conv_general,
    .positions = positions_conv_general,
};

Value conv_general(Arg x, Arg kernel, const ConvGeometry& geometry) {
  Values v = promoted({x, kernel});
  const ConvGeometry g = completed(geometry, v[1].rank() - 2);
  return emit1(conv_general_op, std::move(v), to_attrs(g), x.loc);
}

ConvGeometry same_padding(const Shape& spatial, const Shape& kernel,
                          ConvGeometry geometry) {
  const auto rank = static_cast<std::int64_t>(spatial.size());
  BT_REQUIRE(
      rank >= 1 && kernel.size() == spatial.size(),
      fmt::format("same_padding: sizes {} and windows {} must have one rank, at least 1",
                  to_string(spatial), to_string(kernel)));
  ConvGeometry g = completed(std::move(geometry), rank);
  BT_REQUIRE(std::all_of(g.input_dilation.begin(), g.input_dilation.end(),
                         [](std::int64_t d) { return d == 1; }),
             fmt::format("same_padding: SAME is defined for input dilation 1, got {}",
                         to_string(g.input_dilation)));
  for (const Ints* v : {&g.strides, &g.kernel_dilation})
    BT_REQUIRE(v->size() == spatial.size() && *std::min_element(v->begin(), v->end()) > 0,
               fmt::format("same_padding: needs {} positive entries, got {}", rank,
                           to_string(*v)));
  g.pad_low.assign(spatial.size(), 0);
  g.pad_high.assign(spatial.size(), 0);
  for (std::size_t a = 0; a < spatial.size(); ++a) {
    const std::int64_t out = (spatial[a] + g.strides[a] - 1) / g.strides[a];
    const std::int64_t reach =
        (out - 1) * g.strides[a] + dilated(kernel[a], g.kernel_dilation[a]);
    const std::int64_t total = std::max<std::int64_t>(reach - spatial[a], 0);
    g.pad_low[a] = total / 2;
    g.pad_high[a] = total - g.pad_low[a];
  }
  return g;
}

}  // namespace braintrace
