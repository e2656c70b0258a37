// SPDX-License-Identifier: Apache-2.0
#pragma once
// The spike function: forward the step H(x) = [x >= 0], backward a smooth stand-in d(x).
// d is evaluated on stop_gradient(x), so the second derivative is zero.
// Element by element and declared so: no analysis meets an opaque hole.
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braintrace/ir/value.h"

namespace braintrace::nn {

class Surrogate {
 public:
  using Parameter = std::pair<std::string_view, double>;

  // By name, with parameters that replace the defaults of the table below:
  //   Surrogate("ReluGrad", {{"width", 2}})
  // UserError lists the known names, or the known parameters of the name.
  explicit Surrogate(std::string_view name = "ReluGrad",
                     std::initializer_list<Parameter> parameters = {});
  Surrogate(std::string_view name, std::span<const Parameter> parameters);

  Value operator()(const Value& x) const;  // UserError unless x is float
  Value derivative(const Value& x) const;  // d(x)

  std::string_view name() const;
  std::string to_string() const;  // "ReluGrad(alpha=0.3, width=1)"
  friend bool operator==(const Surrogate&, const Surrogate&) = default;

 private:
  std::size_t index_ = 0;  // in the table
  std::vector<double> parameters_;
};

// Names, in table order. With n(x; m, s) the normal density and sg the logistic function:
//   ReluGrad(alpha=.3, width=1)         max(alpha width - alpha |x|, 0)
//   Sigmoid(alpha=4)                    alpha sg(alpha x) (1 - sg(alpha x))
//   Arctan(alpha=1)                     (alpha / 2) / (1 + (pi alpha x / 2)^2)
//   SoftSign(alpha=1)                   (alpha / 2) / (1 + |alpha x|)^2
//   PiecewiseQuadratic(alpha=1)         alpha - alpha^2 |x| where |x| <= 1/alpha, else 0
//   PiecewiseExp(alpha=1)               (alpha / 2) exp(-alpha |x|)
//   ERF(alpha=1)                        alpha / sqrt(pi) exp(-alpha^2 x^2)
//   NonzeroSignLog(alpha=1)             1 / (1/alpha + |x|)
//   PiecewiseLeakyRelu(c=.01, w=1)      1 / (2w) where |x| <= w, else c
//   SquarewaveFourierSeries(n=2, T=8)   (4/T) sum_{i=1..n} cos((2i-1) 2 pi x / T)
//   S2NN(alpha=4, beta=1)               x < 0: as Sigmoid; else beta / (x + 1)
//   QPseudoSpike(alpha=2)               (1 + 2|x| / (alpha+1))^-alpha
//   LeakyRelu(alpha=.1, beta=1)         alpha where x < 0, else beta
//   LogTailedRelu(alpha=0)              1/x where x > 1; 1 where 0 < x <= 1; else alpha
//   GaussianGrad(sigma=.5, alpha=.5)    alpha n(x; 0, sigma)
//   MultiGaussianGrad(h=.15, s=6, sigma=.5, scale=.5)
//       scale ((1+h) n(x; 0, sigma) - h n(x; sigma, s sigma) - h n(x; -sigma, s sigma))
//   InvSquareGrad(alpha=100)            1 / (alpha |x| + 1)^2
//   SlayerGrad(alpha=1)                 exp(-alpha |x|)
// and what users of other spiking libraries expect:
//   FastSigmoid(slope=25)               1 / (1 + slope |x|)^2
//   SuperSpike(beta=10)                 1 / (beta |x| + 1)^2
//   ATan(alpha=2)                       (alpha / 2) / (1 + (pi alpha x / 2)^2)
//   Triangular(width=1)                 max(0, 1 - |x| / width) / width
//   Boxcar(width=1)                     1 / width where |x| <= width / 2, else 0
//   StraightThrough()                   1
std::span<const std::string_view> surrogate_names();

}  // namespace braintrace::nn
