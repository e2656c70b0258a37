// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/initializers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/array/orthonormal.h"

namespace braintrace::nn::init {
namespace {

enum class FanMode { in, average };
enum class Law { normal, uniform };

// Standard deviation of a unit normal cut at +-2.
constexpr double truncated_deviation = 0.87962566103423978;

// The standard normal distribution function.
double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

using Coefficients = std::array<double, 8>;
double polynomial(const Coefficients& c, double x) {
  double y = 0;
  for (auto i = c.rbegin(); i != c.rend(); ++i) y = y * x + *i;
  return y;
}

// Inverse of normal_cdf, for what lies within +-5: Wichura's rational approximations
// (algorithm AS 241, 1988), good to 1e-15.
double normal_quantile(double p) {
  static constexpr Coefficients a = {3.3871328727963666080,    1.3314166789178437745e+2,
                                     1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                     4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr Coefficients b = {1.0,
                                     4.2313330701600911252e+1,
                                     6.8718700749205790830e+2,
                                     5.3941960214247511077e+3,
                                     2.1213794301586595867e+4,
                                     3.9307895800092710610e+4,
                                     2.8729085735721942674e+4,
                                     5.2264952788528545610e+3};
  static constexpr Coefficients c = {
      1.42343711074968357734,    4.63033784615654529590,   5.76949722146069140550,
      3.64784832476320460504,    1.27045825245236838258,   2.41780725177450611770e-1,
      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr Coefficients d = {1.0,
                                     2.05319162663775882187,
                                     1.67638483018380384940,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  const double r = std::sqrt(-std::log(std::min(p, 1 - p))) - 1.6;
  return std::copysign(polynomial(c, r) / polynomial(d, r), q);
}

// Every element from its own counter.
template <class F>
Array fill(const Shape& shape, DType dtype, F element) {
  if (dtype != DType::f32 && dtype != DType::f64)
    return fill(shape, DType::f64, element).astype(dtype);
  Array a = Array::uninitialized(dtype, shape);
  const auto draw = [&]<class T>(T* p) {
    for (std::int64_t i = 0, n = a.size(); i < n; ++i)
      p[i] = static_cast<T>(element(static_cast<std::uint64_t>(i)));
  };
  if (dtype == DType::f64)
    draw(a.mutable_data<double>());
  else
    draw(a.mutable_data<float>());
  return a;
}

Array draw_truncated(RngKey key, const Shape& shape, DType dtype, double mean,
                     double deviation) {
  const double low = normal_cdf(-2), width = normal_cdf(2) - low;
  return fill(shape, dtype, [&](std::uint64_t i) {
    const double z = normal_quantile(low + width * uniform_at(key, i));
    return mean + deviation * std::clamp(z, -2.0, 2.0);
  });
}

double fan_of(const Shape& shape, const ScalingOptions& options, FanMode mode) {
  const Fans f = fans(shape, options.fan_axes);
  const double in = static_cast<double>(f.in), out = static_cast<double>(f.out);
  return std::max(1.0, mode == FanMode::in ? in : 0.5 * (in + out));
}

Initializer scaled(const char* who, ScalingOptions options, FanMode mode, Law law,
                   double default_scale) {
  const double scale = options.scale.value_or(default_scale);
  BT_REQUIRE(scale >= 0 && std::isfinite(scale),
             fmt::format("init::{}: scale must be >= 0 and finite, got {}", who, scale));
  return [=](RngKey key, const Shape& shape, DType dtype) {
    const double deviation = std::sqrt(scale / fan_of(shape, options, mode));
    if (law == Law::uniform) {
      const double limit = std::sqrt(3.0) * deviation;
      return random_uniform(key, shape, -limit, limit, dtype);
    }
    if (options.truncated)
      return draw_truncated(key, shape, dtype, 0, deviation / truncated_deviation);
    return fill(shape, dtype,
                [&](std::uint64_t i) { return deviation * normal_at(key, i); });
  };
}

}  // namespace

Fans fans(const Shape& shape, FanAxes axes) {
  if (shape.empty()) return {};
  if (shape.size() == 1) return {shape[0], shape[0]};
  const std::size_t rank = shape.size();
  const bool kernel_first = axes == FanAxes::first_two && rank > 2;
  const std::size_t in = kernel_first ? 1 : rank - 2;
  const std::size_t out = kernel_first ? 0 : rank - 1;
  std::int64_t others = 1;
  for (std::size_t i = 0; i < rank; ++i)
    if (i != in && i != out) others *= shape[i];
  return {shape[in] * others, shape[out] * others};
}

ScalingOptions plain(std::optional<double> scale) {
  return {.scale = scale, .truncated = false, .fan_axes = FanAxes::first_two};
}

Initializer kaiming_normal(ScalingOptions options) {
  return scaled("kaiming_normal", options, FanMode::in, Law::normal, 2);
}

Initializer kaiming_uniform(ScalingOptions options) {
  return scaled("kaiming_uniform", options, FanMode::in, Law::uniform, 2);
}

Initializer xavier_normal(ScalingOptions options) {
  return scaled("xavier_normal", options, FanMode::average, Law::normal, 1);
}

Initializer xavier_uniform(ScalingOptions options) {
  return scaled("xavier_uniform", options, FanMode::average, Law::uniform, 1);
}

Initializer lecun_normal(ScalingOptions options) {
  return scaled("lecun_normal", options, FanMode::in, Law::normal, 1);
}

Initializer lecun_uniform(ScalingOptions options) {
  return scaled("lecun_uniform", options, FanMode::in, Law::uniform, 1);
}

Initializer orthogonal(double scale) {
  return [scale](RngKey key, const Shape& shape, DType dtype) {
    BT_REQUIRE(shape.size() >= 2, fmt::format("init::orthogonal: needs rank >= 2, got {}",
                                              to_string(shape)));
    const std::int64_t columns = shape.back();
    const std::int64_t rows = columns == 0 ? 0 : num_elements(shape) / columns;
    const std::int64_t tall = std::max(rows, columns), thin = std::min(rows, columns);
    std::vector<double> m(static_cast<std::size_t>(tall * thin));
    for (std::size_t i = 0; i < m.size(); ++i) m[i] = normal_at(key, i);
    orthonormalize(m, tall);
    const bool wide = rows < columns;
    return fill(shape, dtype, [&](std::uint64_t i) {
      const std::int64_t r = static_cast<std::int64_t>(i) / columns;
      const std::int64_t c = static_cast<std::int64_t>(i) % columns;
      return scale * m[static_cast<std::size_t>(wide ? r * tall + c : c * tall + r)];
    });
  };
}

Initializer zero() { return constant_init(0); }

Initializer constant(double value) { return constant_init(value); }

Initializer normal(double mean, double standard_deviation) {
  BT_REQUIRE(standard_deviation >= 0,
             fmt::format("init::normal: standard_deviation must be >= 0, got {}",
                         standard_deviation));
  return [=](RngKey key, const Shape& shape, DType dtype) {
    return fill(shape, dtype, [&](std::uint64_t i) {
      return mean + standard_deviation * normal_at(key, i);
    });
  };
}

Initializer truncated_normal(double mean, double standard_deviation) {
  BT_REQUIRE(
      standard_deviation >= 0,
      fmt::format("init::truncated_normal: standard_deviation must be >= 0, got {}",
                  standard_deviation));
  return [=](RngKey key, const Shape& shape, DType dtype) {
    return draw_truncated(key, shape, dtype, mean, standard_deviation);
  };
}

Initializer uniform(double low, double high) {
  BT_REQUIRE(low <= high,
             fmt::format("init::uniform: low must be <= high, got {} and {}", low, high));
  return [=](RngKey key, const Shape& shape, DType dtype) {
    return random_uniform(key, shape, low, high, dtype);
  };
}

Initializer identity(double scale) {
  return [scale](RngKey, const Shape& shape, DType dtype) {
    BT_REQUIRE(shape.size() == 2,
               fmt::format("init::identity: needs rank 2, got {}", to_string(shape)));
    return fill(shape, dtype, [&](std::uint64_t i) {
      const auto columns = static_cast<std::uint64_t>(shape[1]);
      return i / columns == i % columns ? scale : 0.0;
    });
  };
}

Initializer given(const Array& values) {
  return [values](RngKey, const Shape& shape, DType dtype) {
    BT_REQUIRE(broadcasts_to(values.shape(), shape),
               fmt::format("init::given: {} does not broadcast to {}",
                           to_string(values.shape()), to_string(shape)));
    return values.astype(dtype).broadcast_to(shape).contiguous();
  };
}

}  // namespace braintrace::nn::init
