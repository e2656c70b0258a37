// SPDX-License-Identifier: Apache-2.0
#pragma once
// What layers over spatial axes share: per-axis options and the order of axes.
#include <functional>
#include <string_view>

#include "braintrace/ir/value.h"
#include "braintrace/nn/conv.h"

namespace braintrace::nn::internal {

// n entries, each >= 1; one entry stands for all. UserError names who and what.
Ints per_axis(std::string_view who, int n, std::string_view what, const PerAxis& given);

// f on x as [batch, *spatial, C] with n spatial axes: leading axes are folded and the
// channels moved, both undone on the result. Needs: rank of x > n.
Value channels_last(const Value& x, int n, bool channel_first,
                    const std::function<Value(const Value&)>& f);

}  // namespace braintrace::nn::internal
