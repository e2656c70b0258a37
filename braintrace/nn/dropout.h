// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random silencing during training.
#include "braintrace/model/module.h"

namespace braintrace::nn {

// Training: keeps each entry with probability keep_prob and divides it by keep_prob,
// else 0. Otherwise y = x. The key is a state, so replay sees the same mask.
class Dropout : public Module {
 public:
  explicit Dropout(double keep_prob = 0.5);
  Value update(Value x) override;

  RngState key;

 private:
  double keep_prob_;
};

// Drops whole channels: x (..., *spatial, C) with N spatial axes shares one decision
// along them.
template <int N>
class ChannelDropout : public Module {
 public:
  explicit ChannelDropout(double keep_prob = 0.5);
  Value update(Value x) override;

  RngState key;

 private:
  double keep_prob_;
};

using Dropout1d = ChannelDropout<1>;
using Dropout2d = ChannelDropout<2>;
using Dropout3d = ChannelDropout<3>;

extern template class ChannelDropout<1>;
extern template class ChannelDropout<2>;
extern template class ChannelDropout<3>;

}  // namespace braintrace::nn
