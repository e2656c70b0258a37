// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pooling over 1, 2 or 3 spatial axes. x (..., *spatial, C), or (..., C, *spatial) with
// channel_first; leading axes are free.
#include <string>

#include "braintrace/model/module.h"
#include "braintrace/nn/conv.h"

namespace braintrace::nn {

enum class PoolKind { max, average };

struct PoolLayerOptions {
  PerAxis stride = Ints{};        // empty: the kernel
  std::string padding = "VALID";  // or "SAME"
  bool channel_first = false;
};

// The largest entry, or the mean, of every window of the kernel's size. Padded entries
// never count.
template <PoolKind K, int N>
class Pool : public Module {
 public:
  explicit Pool(PerAxis kernel_size, PoolLayerOptions options = {});
  Value update(Value x) override;

 private:
  Ints kernel_, stride_;
  PoolLayerOptions options_;
};

struct AdaptivePoolOptions {
  bool channel_first = false;
};

// Cuts each spatial axis into target_size neighbouring pieces (the first ones longer by
// one when the size does not divide) and takes the largest entry or mean of each.
template <PoolKind K, int N>
class AdaptivePool : public Module {
 public:
  explicit AdaptivePool(PerAxis target_size, AdaptivePoolOptions options = {});
  Value update(Value x) override;

 private:
  Ints target_;
  AdaptivePoolOptions options_;
};

using MaxPool1d = Pool<PoolKind::max, 1>;
using MaxPool2d = Pool<PoolKind::max, 2>;
using MaxPool3d = Pool<PoolKind::max, 3>;
using AvgPool1d = Pool<PoolKind::average, 1>;
using AvgPool2d = Pool<PoolKind::average, 2>;
using AvgPool3d = Pool<PoolKind::average, 3>;
using AdaptiveMaxPool1d = AdaptivePool<PoolKind::max, 1>;
using AdaptiveMaxPool2d = AdaptivePool<PoolKind::max, 2>;
using AdaptiveMaxPool3d = AdaptivePool<PoolKind::max, 3>;
using AdaptiveAvgPool1d = AdaptivePool<PoolKind::average, 1>;
using AdaptiveAvgPool2d = AdaptivePool<PoolKind::average, 2>;
using AdaptiveAvgPool3d = AdaptivePool<PoolKind::average, 3>;

extern template class Pool<PoolKind::max, 1>;
extern template class Pool<PoolKind::max, 2>;
extern template class Pool<PoolKind::max, 3>;
extern template class Pool<PoolKind::average, 1>;
extern template class Pool<PoolKind::average, 2>;
extern template class Pool<PoolKind::average, 3>;
extern template class AdaptivePool<PoolKind::max, 1>;
extern template class AdaptivePool<PoolKind::max, 2>;
extern template class AdaptivePool<PoolKind::max, 3>;
extern template class AdaptivePool<PoolKind::average, 1>;
extern template class AdaptivePool<PoolKind::average, 2>;
extern template class AdaptivePool<PoolKind::average, 3>;

}  // namespace braintrace::nn
