// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/conv.h"

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/nn/spatial_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::string name(int n) { return fmt::format("Conv{}d", n); }

// Numbers become pairs, once the number of axes is known.
Padding paired(int n, Padding p) {
  if (n == 1 && p.each.size() == 2)
    p.pairs = {{p.each[0], p.each[1]}};
  else
    for (const std::int64_t e : p.each) p.pairs.emplace_back(e, e);
  p.each.clear();
  return p;
}

void check_padding(int n, const Padding& p) {
  if (!p.mode.empty()) {
    BT_REQUIRE(p.mode == "SAME" || p.mode == "VALID",
               fmt::format("{}: padding must be 'SAME', 'VALID' or numbers, got '{}'",
                           name(n), p.mode));
    return;
  }
  BT_REQUIRE(p.pairs.size() == 1 || p.pairs.size() == static_cast<std::size_t>(n),
             fmt::format("{}: padding must be one (low, high) pair or {}, got {}",
                         name(n), n, p.pairs.size()));
  for (const auto& [low, high] : p.pairs)
    BT_REQUIRE(low >= 0 && high >= 0,
               fmt::format("{}: padding must be >= 0, got ({}, {})", name(n), low, high));
}

// Fills every per-axis option and checks all of them.
ConvOptions checked(int n, std::int64_t in, std::int64_t out, ConvOptions o) {
  internal::positive(name(n), "the number of input channels", in);
  internal::positive(name(n), "out_channels", out);
  internal::positive(name(n), "groups", o.groups);
  BT_REQUIRE(
      in % o.groups == 0 && out % o.groups == 0,
      fmt::format("{}: groups must divide the channel counts, got {} groups for {} "
                  "in and {} out",
                  name(n), o.groups, in, out));
  o.kernel_size = internal::per_axis(name(n), n, "kernel_size", o.kernel_size);
  o.stride = internal::per_axis(name(n), n, "stride", o.stride);
  o.lhs_dilation = internal::per_axis(name(n), n, "lhs_dilation", o.lhs_dilation);
  o.rhs_dilation = internal::per_axis(name(n), n, "rhs_dilation", o.rhs_dilation);
  o.padding = paired(n, std::move(o.padding));
  check_padding(n, o.padding);
  BT_REQUIRE(o.w_init, fmt::format("{}: w_init must be given, got none", name(n)));
  return o;
}

Shape kernel_shape(const ConvOptions& o, std::int64_t in, std::int64_t out) {
  Shape s = o.kernel_size.values;
  s.push_back(in / o.groups);
  s.push_back(out);
  return s;
}

Shape bias_shape(int n, std::int64_t out, bool channel_first) {
  Shape s(static_cast<std::size_t>(n) + 1, 1);
  (channel_first ? s.front() : s.back()) = out;
  return s;
}

std::vector<LeafSpec> leaves(int n, std::int64_t in, std::int64_t out, bool channel_first,
                             const ConvOptions& given) {
  const ConvOptions o = checked(n, in, out, given);
  std::vector<LeafSpec> specs = {{"weight", kernel_shape(o, in, out), o.w_init}};
  if (o.b_init) specs.push_back({"bias", bias_shape(n, out, channel_first), o.b_init});
  return specs;
}

// Needs: rank n + 1.
std::int64_t channels_of(int n, const Shape& size, bool channel_first) {
  BT_REQUIRE(
      size.size() == static_cast<std::size_t>(n) + 1,
      fmt::format("{}: in_size must hold {} spatial sizes and the channels, got {}",
                  name(n), n, to_string(size)));
  return channel_first ? size.front() : size.back();
}

}  // namespace

template <int N>
Conv<N>::Conv(Shape in_size, std::int64_t out_channels, ConvOptions options)
    : Conv(in_size, channels_of(N, in_size, options.channel_first), out_channels,
           options.channel_first, options) {
  for (std::int64_t d : in_size_) internal::positive(name(N), "every size of in_size", d);
}

template <int N>
Conv<N>::Conv(std::int64_t in_channels, std::int64_t out_channels, ConvOptions options)
    : Conv(Shape{}, in_channels, out_channels, true, std::move(options)) {}

template <int N>
Conv<N>::Conv(Shape in_size, std::int64_t in_channels, std::int64_t out_channels,
              bool channel_first, ConvOptions options)
    : weight(leaves(N, in_channels, out_channels, channel_first, options)),
      in_size_(std::move(in_size)),
      in_channels_(in_channels),
      out_channels_(out_channels),
      channel_first_(channel_first),
      options_(checked(N, in_channels, out_channels, std::move(options))) {
  if (options_.w_mask)
    internal::require_broadcasts(name(N), "w_mask", options_.w_mask->shape(),
                                 kernel_shape(options_, in_channels_, out_channels_));
  add("weight", weight);
}

template <int N>
ConvGeometry Conv<N>::geometry(const Shape& spatial) const {
  ConvGeometry g{.strides = options_.stride.values,
                 .pad_low = Ints(N, 0),
                 .pad_high = Ints(N, 0),
                 .input_dilation = options_.lhs_dilation.values,
                 .kernel_dilation = options_.rhs_dilation.values,
                 .groups = options_.groups};
  if (options_.padding.mode == "SAME")
    return same_padding(spatial, options_.kernel_size.values, g);
  for (std::size_t i = 0; i < N && !options_.padding.pairs.empty(); ++i) {
    const Padding::Pairs& pairs = options_.padding.pairs;
    std::tie(g.pad_low[i], g.pad_high[i]) = pairs.size() == 1 ? pairs[0] : pairs[i];
  }
  return g;
}

template <int N>
void Conv<N>::require_input(const Shape& x) const {
  const std::size_t own = N + 1;
  const bool long_enough = x.size() >= own;
  const Shape tail = long_enough ? Shape(x.end() - own, x.end()) : x;
  if (!in_size_.empty()) {
    BT_REQUIRE(tail == in_size_, fmt::format("{}: x must end with {}, got {}", name(N),
                                             to_string(in_size_), to_string(x)));
    return;
  }
  BT_REQUIRE(long_enough && tail[0] == in_channels_,
             fmt::format("{}: x must end with {} channels and {} spatial sizes, got {}",
                         name(N), in_channels_, N, to_string(x)));
}

template <int N>
Value Conv<N>::apply(const Value& x) {
  const Shape shape = x.shape();
  const Shape spatial(shape.begin() + 1, shape.end() - 1);
  EtpHooks hooks;
  if (options_.w_mask) {
    hooks.weight = [this](const Value& w) {
      return w * astype(*options_.w_mask, w.dtype());
    };
  }
  Tangent bias;
  if (options_.b_init) bias = reshape(weight.value("bias"), {out_channels_});
  return conv(x, weight.value("weight"), geometry(spatial), bias, hooks);
}

template <int N>
Value Conv<N>::update(Value x) {
  require_input(x.shape());
  return internal::channels_last(x, N, channel_first_,
                                 [this](const Value& folded) { return apply(folded); });
}

template <int N>
const Shape& Conv<N>::in_size() const {
  BT_REQUIRE(!in_size_.empty(),
             fmt::format("{}: the input size is not known, only its channels", name(N)));
  return in_size_;
}

template <int N>
Shape Conv<N>::out_size() const {
  const Shape& in = in_size();
  Shape spatial(in.begin() + (channel_first_ ? 1 : 0),
                in.end() - (channel_first_ ? 0 : 1));
  const ConvGeometry g = geometry(spatial);
  Shape out;
  for (std::size_t i = 0; i < N; ++i) {
    const std::int64_t reach =
        (options_.kernel_size.values[i] - 1) * g.kernel_dilation[i] + 1;
    const std::int64_t padded =
        (spatial[i] - 1) * g.input_dilation[i] + 1 + g.pad_low[i] + g.pad_high[i];
    out.push_back(padded < reach ? 0 : (padded - reach) / g.strides[i] + 1);
  }
  out.insert(channel_first_ ? out.begin() : out.end(), out_channels_);
  return out;
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;

}  // namespace braintrace::nn
