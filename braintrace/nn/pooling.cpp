// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/pooling.h"

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/nn/spatial_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

std::string name(PoolKind kind, int n, const char* prefix = "") {
  return fmt::format("{}{}Pool{}d", prefix, kind == PoolKind::max ? "Max" : "Avg", n);
}

void require_rank(const std::string& who, const Value& x, int n) {
  BT_REQUIRE(x.rank() > n, fmt::format("{}: x needs {} spatial axes and the channels, "
                                       "got {}",
                                       who, n, to_string(x.shape())));
}

// Reduces pieces of equal length along one axis: [.., pieces * length, ..].
Value reduce_pieces(PoolKind kind, const Value& x, std::int64_t axis,
                    std::int64_t pieces) {
  Shape split = x.shape();
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t length = split[at] / pieces;
  split[at] = length;
  split.insert(split.begin() + axis, pieces);
  const ReduceOptions over{.axes = {axis + 1}};
  const Value cut = reshape(x, split);
  return kind == PoolKind::max ? max(cut, over) : mean(cut, over);
}

Value adapt_axis(PoolKind kind, const Value& x, std::int64_t axis, std::int64_t target,
                 const std::string& who) {
  const std::int64_t size = x.dim(axis);
  BT_REQUIRE(size >= target,
             fmt::format("{}: target_size must be at most the axis size {}, got {}", who,
                         size, target));
  const std::int64_t longer = size % target, length = size / target;
  if (longer == 0) return reduce_pieces(kind, x, axis, target);
  const std::int64_t head = longer * (length + 1);
  const Value first = slice_axis(x, axis, 0, head);
  const Value rest = slice_axis(x, axis, head, size - head);
  return concat({reduce_pieces(kind, first, axis, longer),
                 reduce_pieces(kind, rest, axis, target - longer)},
                axis);
}

}  // namespace

template <PoolKind K, int N>
Pool<K, N>::Pool(PerAxis kernel_size, PoolLayerOptions options)
    : kernel_(internal::per_axis(name(K, N), N, "kernel_size", kernel_size)),
      stride_(internal::per_axis(
          name(K, N), N, "stride",
          options.stride.values.empty() ? PerAxis(kernel_) : options.stride)),
      options_(std::move(options)) {
  BT_REQUIRE(options_.padding == "SAME" || options_.padding == "VALID",
             fmt::format("{}: padding must be 'SAME' or 'VALID', got '{}'", name(K, N),
                         options_.padding));
}

template <PoolKind K, int N>
Value Pool<K, N>::update(Value x) {
  require_rank(name(K, N), x, N);
  const PoolOptions window{
      .window = kernel_, .strides = stride_, .padding = options_.padding};
  return internal::channels_last(x, N, options_.channel_first, [&](const Value& v) {
    return K == PoolKind::max ? max_pool(v, window) : avg_pool(v, window);
  });
}

template <PoolKind K, int N>
AdaptivePool<K, N>::AdaptivePool(PerAxis target_size, AdaptivePoolOptions options)
    : target_(internal::per_axis(name(K, N, "Adaptive"), N, "target_size", target_size)),
      options_(options) {}

template <PoolKind K, int N>
Value AdaptivePool<K, N>::update(Value x) {
  const std::string who = name(K, N, "Adaptive");
  require_rank(who, x, N);
  return internal::channels_last(x, N, options_.channel_first, [&](const Value& v) {
    Value y = v;
    for (int a = 0; a < N; ++a)
      y = adapt_axis(K, y, a + 1, target_[static_cast<std::size_t>(a)], who);
    return y;
  });
}

template class Pool<PoolKind::max, 1>;
template class Pool<PoolKind::max, 2>;
template class Pool<PoolKind::max, 3>;
template class Pool<PoolKind::average, 1>;
template class Pool<PoolKind::average, 2>;
template class Pool<PoolKind::average, 3>;
template class AdaptivePool<PoolKind::max, 1>;
template class AdaptivePool<PoolKind::max, 2>;
template class AdaptivePool<PoolKind::max, 3>;
template class AdaptivePool<PoolKind::average, 1>;
template class AdaptivePool<PoolKind::average, 2>;
template class AdaptivePool<PoolKind::average, 3>;

}  // namespace braintrace::nn
