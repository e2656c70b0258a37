// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution layers over 1, 2 or 3 spatial axes.
#include <initializer_list>
#include <string>
#include <utility>

#include "braintrace/ir/lowering.h"
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

// One number for every spatial axis, or one per axis.
struct PerAxis {
  Ints values;
  PerAxis(int n) : values{n} {}                                  // NOLINT
  PerAxis(std::int64_t n) : values{n} {}                         // NOLINT
  PerAxis(std::initializer_list<std::int64_t> v) : values(v) {}  // NOLINT
  PerAxis(Ints v) : values(std::move(v)) {}                      // NOLINT
};

// "SAME", "VALID", or zeros to add before and after each axis.
struct Padding {
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  std::string mode;  // empty: explicit numbers
  Pairs pairs;
  Ints each;  // (n, n) per axis; over one axis two numbers are (low, high)
  Padding(const char* name) : mode(name) {}             // NOLINT
  Padding(std::string name) : mode(std::move(name)) {}  // NOLINT
  Padding(int n) : pairs{{n, n}} {}                     // NOLINT: both sides, every axis
  Padding(Ints numbers) : each(std::move(numbers)) {}   // NOLINT
  Padding(Pairs p) : pairs(std::move(p)) {}             // NOLINT: one, or one per axis
};

struct ConvOptions {
  PerAxis kernel_size = 1;
  PerAxis stride = 1;
  Padding padding = "SAME";
  PerAxis lhs_dilation = 1;
  PerAxis rhs_dilation = 1;
  std::int64_t groups = 1;
  Initializer w_init = init::xavier_normal();
  Initializer b_init = {};           // empty: no bias
  std::optional<Array> w_mask = {};  // broadcast to the kernel, multiplies it in the op
  bool channel_first = false;        // x and y as (C, *spatial); ignored without in_size
};

// y = x (*) K + b, cross-correlation (the kernel is not flipped). Leading axes are free.
// Parameter 'weight' with leaves weight [*kernel, C / groups, O] and bias [1, .., 1, O],
// or [O, 1, .., 1] when channels come first.
//
//   Conv2d({28, 28, 1}, 8, {.kernel_size = 3})   x (28, 28, 1), sizes checked
//   Conv2d(1, 8, {.kernel_size = 3})             x (1, H, W): channels first, any H and W
template <int N>
class Conv : public Module {
 public:
  Conv(Shape in_size, std::int64_t out_channels, ConvOptions options);
  Conv(std::int64_t in_channels, std::int64_t out_channels, ConvOptions options);
  Value update(Value x) override;

  // Without leading axes. UserError when only the channels of x are known.
  const Shape& in_size() const;
  Shape out_size() const;

  ParamState weight;

 private:
  Conv(Shape in_size, std::int64_t in_channels, std::int64_t out_channels,
       bool channel_first, ConvOptions options);
  ConvGeometry geometry(const Shape& spatial) const;
  void require_input(const Shape& x) const;
  Value apply(const Value& x);  // [n, *spatial, C]

  Shape in_size_;  // empty: only the channels are known
  std::int64_t in_channels_, out_channels_;
  bool channel_first_;
  ConvOptions options_;
};

using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

extern template class Conv<1>;
extern template class Conv<2>;
extern template class Conv<3>;

}  // namespace braintrace::nn
