// SPDX-License-Identifier: Apache-2.0
// Trainable convolution: x [..., *spatial, c], kernel [*k, c/groups, o], bias [o]. Any
// leading axes; every output position keeps a trace of its own.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/conv_geometry.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_conv(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("conv", in, 2);
  check_hooks("conv", attrs);
  const Type y = conv_type("conv", in[0], in[1], geometry_of(attrs));
  check_bias("conv", in, 2, {y.shape.back()});
  return {y};
}

template <class T>
void add_along_last(const Array& bias, Array& y) {
  const T* b = bias.data<T>();
  const std::int64_t n = bias.size();
  T* p = y.mutable_data<T>();
  for (std::int64_t i = 0, size = y.size(); i < size; ++i) p[i] += b[i % n];
}

void eval_conv(const Kernel& k) {
  run_conv(k.in[0], k.in[1], geometry_of(k.attrs), k.out[0]);
  if (k.in.size() < 3) return;
  if (k.out[0].dtype() == DType::f64) return add_along_last<double>(k.in[2], k.out[0]);
  add_along_last<float>(k.in[2], k.out[0]);
}

// The leading axes of x as one.
Value as_images(const Value& x, std::int64_t spatial) {
  const Shape s = x.shape();
  const std::int64_t lead = x.rank() - spatial - 1;
  Shape shape = {num_elements(std::span(s).first(static_cast<std::size_t>(lead)))};
  shape.insert(shape.end(), s.begin() + lead, s.end());
  return reshape(x, shape);
}

Value plain_conv(const Value& x, const Value& kernel, const Site& s, const Shape& y) {
  return reshape(
      conv_general(as_images(x, kernel.rank() - 2), kernel, geometry_of(s.attrs)), y);
}

std::vector<Tangent> jvp_conv(const Site& s, std::span<const Tangent> d) {
  const Shape y = s.out[0].shape();
  std::vector<Tangent> parts(3);
  if (d[0]) parts[0] = plain_conv(*d[0], s.in[1], s, y);
  if (d[1]) parts[1] = plain_conv(s.in[0], *d[1], s, y);
  if (d.size() > 2) parts[2] = bias_tangent(d[2], s.out[0].type());
  return {sum_of(parts)};
}

// With a kernel per lane: plain convolutions, the other leading axes as one.
BatchResult batch_conv(const Site& s, std::span<const BatchAxis> axes) {
  if (only_x_batched(axes)) return batch_leading(s, axes);
  const Lane x = fronted(lane(s, axes, 0)), kernel = fronted(lane(s, axes, 1));
  const std::int64_t spatial = kernel.value.rank() - 2 - (kernel.axis ? 1 : 0);
  const Shape full = x.value.shape();
  const std::ptrdiff_t skip = x.axis ? 1 : 0;
  const Shape lead(full.begin() + skip, full.end() - 1 - spatial);
  Shape merged(full.begin(), full.begin() + skip);
  merged.push_back(num_elements(lead));
  merged.insert(merged.end(), full.end() - 1 - spatial, full.end());
  Attrs attrs = to_attrs(geometry_of(s.attrs));
  Lane y = fronted(on_lanes(conv_general_op, {{reshape(x.value, merged), x.axis}, kernel},
                            attrs, s.loc));
  Shape shape = y.value.shape();
  const std::ptrdiff_t at = y.axis ? 1 : 0;
  shape.erase(shape.begin() + at);
  shape.insert(shape.begin() + at, lead.begin(), lead.end());
  y.value = reshape(y.value, shape);
  if (s.in.size() > 2) y = add_bias(y, lane(s, axes, 2));
  return as_result(y);
}

PositionMap positions_conv(const Signature& s) {
  const std::int64_t spatial = s.in[1].rank() - 2, lead = s.in[0].rank() - spatial - 1;
  InputFlow x = identity_flow(lead), kernel;
  kernel.axes.assign(static_cast<std::size_t>(lead), {Flow::fresh, -1});
  for (std::int64_t a = 0; a < spatial; ++a) {
    x.axes.push_back({Flow::mixed, lead + a});
    kernel.axes.push_back({Flow::mixed, a});
  }
  x.axes.push_back({Flow::mixed, lead + spatial});
  kernel.axes.push_back({Flow::same, spatial + 1});
  PositionMap map{{{x}, {kernel}}};
  if (s.in.size() > 2) map.flow.push_back({bias_flow(s.out[0].rank(), 1)});
  return map;
}

Lowering lower_conv(const Signature& s) { return lowering::Conv{geometry_of(s.attrs)}; }

// ---- eligibility ----

Type trace_conv(const Signature& s, int slot) {
  Type t = s.out[0];
  const Shape& kernel = s.in[1].shape;
  if (slot == 0) t.shape.insert(t.shape.end() - 1, kernel.begin(), kernel.end() - 1);
  return t;
}

Anchor anchor_conv(const Signature& s, int slot) {
  Anchor a = same_anchor(s.out[0].rank());
  const auto inner = static_cast<std::size_t>(s.in[1].rank() - 1);
  if (slot == 0) a.insert(a.end() - 1, inner, AnchorAxis{-1, {}});
  return a;
}

// One spatial axis list, framed by `lead` and one channel entry.
Ints framed_conv(std::int64_t lead, std::int64_t filler, const Ints& spatial,
                 std::int64_t channel) {
  Ints v(static_cast<std::size_t>(lead), filler);
  v.insert(v.end(), spatial.begin(), spatial.end());
  v.push_back(channel);
  return v;
}

// What every output position sees of x: [lead..., *spatial_out, *k, c].
Value patches(const Value& x, const Shape& kernel, const Shape& y,
              const ConvGeometry& g) {
  const auto spatial = static_cast<std::int64_t>(g.strides.size());
  const std::int64_t lead = x.rank() - spatial - 1;
  Ints holes = g.input_dilation;
  for (std::int64_t& h : holes) --h;
  // Negative padding crops: the slices start later instead.
  Ints low = g.pad_low, high = g.pad_high;
  for (Ints* side : {&low, &high})
    for (std::int64_t& p : *side) p = std::max<std::int64_t>(p, 0);
  const Value padded = pad(x, framed_conv(lead, 0, low, 0), framed_conv(lead, 0, high, 0),
                           0, framed_conv(lead, 0, holes, 0));
  Shape size = y;
  size.back() = x.dim(-1);
  const Ints step = framed_conv(lead, 1, g.strides, 1);
  const Shape window(kernel.begin(), kernel.begin() + spatial);
  Values parts;
  Ints at(window.size());
  for (std::int64_t i = 0, n = num_elements(window); i < n; ++i) {
    std::int64_t rest = i;
    for (std::size_t a = window.size(); a-- > 0; rest /= window[a])
      at[a] = rest % window[a] * g.kernel_dilation[a] + low[a] - g.pad_low[a];
    parts.push_back(slice(padded, framed_conv(lead, 0, at, 0), size, step));
  }
  Shape shape(y.begin(), y.end() - 1);
  shape.insert(shape.end(), window.begin(), window.end());
  shape.push_back(x.dim(-1));
  return reshape(stack(parts, lead + spatial), shape);
}

Value instant_conv(const Site& s, int slot, const Value& df) {
  if (slot != 0) return df;
  const ConvGeometry g = geometry_of(s.attrs);
  const Shape kernel = s.in[1].shape(), y = df.shape();
  const std::int64_t spatial = s.in[1].rank() - 2;
  Shape result(y.begin(), y.end() - 1);
  result.insert(result.end(), kernel.begin(), kernel.end());
  if (num_elements(result) == 0) return zeros(result, df.dtype());
  // Both as [positions..., *k, c/g, g, o/g].
  const Value seen = patches(s.in[0], kernel, y, g);
  Shape split = seen.shape();
  split.back() = g.groups;
  split.push_back(kernel[static_cast<std::size_t>(spatial)]);
  Ints swap = iota_ints(static_cast<std::int64_t>(split.size()));
  std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
  Shape signal(y.begin(), y.end() - 1);
  signal.insert(signal.end(), static_cast<std::size_t>(spatial + 1), 1);
  signal.push_back(g.groups);
  signal.push_back(y.back() / g.groups);
  return reshape(
      expand_dims(transpose(reshape(seen, split), swap), -1) * reshape(df, signal),
      result);
}

std::string_view reference_name_conv(const Signature&) { return "etp_conv"; }

const EtpRule rule_conv = {
    .x = 0,
    .weights = weight_and_bias,
    .trace = trace_conv,
    .anchor = anchor_conv,
    .instant = instant_conv,
    .reference_name = reference_name_conv,
};

}  // namespace

const OpDef conv_op = {
    .name = "conv",
    .arity = kVariadic,
    .attrs = {{"groups", AttrKind::integer},
              {"hooks", AttrKind::text, true},
              {"input_dilation", AttrKind::ints},
              {"kernel_dilation", AttrKind::ints},
              {"pad_high", AttrKind::ints},
              {"pad_low", AttrKind::ints},
              {"strides", AttrKind::ints}},
    .infer = infer_conv,
    .eval = eval_conv,
    .lower = lower_conv,
    .code =
        "conv($*, {strides}, {pad_low}, {pad_high}, {input_dilation}, "
        "{kernel_dilation}, {groups})",
    .jvp = jvp_conv,
    .batch = batch_conv,
    .positions = positions_conv,
    .etp = &rule_conv,
};

Value conv(Arg x, Arg kernel, const ConvGeometry& geometry, const Tangent& bias,
           const EtpHooks& hooks) {
  EtpOperands o = etp_operands("conv", x, kernel, bias, hooks);
  const ConvGeometry g = completed(geometry, o.values[1].rank() - 2);
  return emit1(conv_op, std::move(o.values), with_hooks(to_attrs(g), o.hooks), x.loc);
}

}  // namespace braintrace
