// SPDX-License-Identifier: Apache-2.0
#pragma once
// How parameters start. Two families with the same names and different laws are in use;
// both are here, told apart by options instead of by package:
//   default             truncated normal on [-2, 2] deviations, fans from the last two
//   axes init::plain(...)    untruncated normal, fans counted as in (out, in, *spatial)
//   kernels
// Uniform draws are +-sqrt(3 variance) in both.
#include <cstdint>
#include <optional>

#include "braintrace/model/state.h"

namespace braintrace::nn::init {

enum class FanAxes {
  last_two,  // in = axis -2, out = axis -1, every other axis multiplies both
  first_two  // rank 2: in = rows, out = columns; above: out = axis 0, in = axis 1,
             // the rest multiplies both
};

struct Fans {
  std::int64_t in = 1, out = 1;
};
// Rank 0 counts as 1, rank 1 as its length on both sides.
Fans fans(const Shape& shape, FanAxes axes);

struct ScalingOptions {
  std::optional<double> scale =
      {};  // variance = scale / fan; default 2 for Kaiming, else 1
  bool truncated = true;
  FanAxes fan_axes = FanAxes::last_two;
};
// The plain family. A given scale replaces the default one.
ScalingOptions plain(std::optional<double> scale = {});

Initializer kaiming_normal(ScalingOptions options = {});   // fan in
Initializer kaiming_uniform(ScalingOptions options = {});  // fan in
Initializer xavier_normal(ScalingOptions options = {});    // mean of fan in and fan out
Initializer xavier_uniform(ScalingOptions options = {});
Initializer lecun_normal(ScalingOptions options = {});  // fan in
Initializer lecun_uniform(ScalingOptions options = {});

// Columns (or rows, when there are fewer of them) are orthonormal times scale. The last
// axis counts as columns, all others as rows.
Initializer orthogonal(double scale = 1);

Initializer zero();
Initializer constant(double value);
Initializer normal(double mean = 0, double standard_deviation = 1);
// Normal cut at +-2 deviations, not rescaled.
Initializer truncated_normal(double mean = 0, double standard_deviation = 1);
Initializer uniform(double low = 0, double high = 1);
Initializer identity(double scale = 1);  // rank 2, ones on the diagonal
Initializer given(const Array& values);  // broadcast to the asked shape

}  // namespace braintrace::nn::init

namespace braintrace {

// Arithmetic of initialisers, element by element: 0.1 * init::normal() +
// init::identity(). Two operands draw from keys of their own; a number leaves the draw as
// it is.
Initializer operator+(Initializer a, Initializer b);
Initializer operator-(Initializer a, Initializer b);
Initializer operator*(Initializer a, Initializer b);
Initializer operator/(Initializer a, Initializer b);
Initializer operator+(Initializer a, double b);
Initializer operator-(Initializer a, double b);
Initializer operator*(Initializer a, double b);
Initializer operator/(Initializer a, double b);
Initializer operator+(double a, Initializer b);
Initializer operator-(double a, Initializer b);
Initializer operator*(double a, Initializer b);
Initializer operator/(double a, Initializer b);

}  // namespace braintrace
