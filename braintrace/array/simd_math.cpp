// SPDX-License-Identifier: Apache-2.0
// Highway's vector functions with their gaps closed: outside their ranges they return
// wrong numbers (exp(200) = 0, exp(NaN) = 0, log(0) = -105), and some functions are
// missing.
#include "braintrace/array/simd_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/array/simd_math.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using T = hn::TFromD<D>;

template <class D>
constexpr bool is_f32 = sizeof(T<D>) == 4;

template <class D>
HWY_INLINE auto infinity(D d) {
  return hn::Set(d, std::numeric_limits<T<D>>::infinity());
}
template <class D>
HWY_INLINE auto not_a_number(D d) {
  return hn::Set(d, std::numeric_limits<T<D>>::quiet_NaN());
}
// y, but x where x is NaN.
template <class V>
HWY_INLINE V keep_nan(V x, V y) {
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}
// y, but x where x is 0 of either sign.
template <class D, class V>
HWY_INLINE V keep_zero(D d, V x, V y) {
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
}

// Beyond this exp is infinite; up to it Highway's is right.
template <class D>
HWY_INLINE auto top(D d) {
  return hn::Set(d, static_cast<T<D>>(is_f32<D> ? 100.0 : 710.0));
}

struct Exp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return keep_nan(x, hn::Exp(d, hn::Min(x, top(d))));
  }
};

struct Expm1 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return keep_nan(x, keep_zero(d, x, hn::Expm1(d, hn::Min(x, top(d)))));
  }
};

// What a logarithm of y says outside (0, inf).
template <class D, class V>
HWY_INLINE V log_edges(D d, V y, V inside) {
  const V low = hn::IfThenElse(hn::Eq(y, hn::Zero(d)), hn::Neg(infinity(d)), inside);
  const V signs = hn::IfThenElse(hn::Lt(y, hn::Zero(d)), not_a_number(d), low);
  return keep_nan(y, hn::IfThenElse(hn::Eq(y, infinity(d)), y, signs));
}

struct Log {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return log_edges(d, x, hn::Log(d, x));
  }
};

struct Log1p {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, static_cast<T<D>>(1));
    return log_edges(d, hn::Add(x, one), hn::Log1p(d, x));
  }
};

// Small |x| by expm1, the rest by 1 - 2 / (e^2|x| + 1): no digits are lost in either.
struct Tanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, static_cast<T<D>>(1)),
            two = hn::Set(d, static_cast<T<D>>(2));
    const V size = hn::Min(hn::Abs(x), hn::Set(d, static_cast<T<D>>(20)));
    const V twice = hn::Add(size, size);
    const V less = hn::Expm1(d, twice);
    const V small = hn::Div(less, hn::Add(less, two));
    const V large = hn::Sub(one, hn::Div(two, hn::Add(hn::Exp(d, twice), one)));
    const V border = hn::Set(d, static_cast<T<D>>(0.55));
    const V y = hn::IfThenElse(hn::Lt(size, border), small, large);
    return keep_nan(x, hn::CopySign(y, x));
  }
};

struct Sigmoid {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, static_cast<T<D>>(1));
    const V e = hn::Exp(d, hn::Neg(hn::Abs(x)));
    const V above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
    return keep_nan(x, hn::Div(above, hn::Add(one, e)));
  }
};

struct Softplus {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V e = hn::Exp(d, hn::Neg(hn::Abs(x)));
    return keep_nan(x, hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, e)));
  }
};

// Highest power first.
constexpr double kErfSmall[] = {8.339971827808768e-05, -0.000813607475720346,
                                0.005200501531362534,  -0.026859210804104805,
                                0.11283692717552185,   -0.37612634897232056,
                                0.12837916612625122};
constexpr double kErfLarge[] = {
    1.6102403606055304e-06, -4.551277379505336e-05, 0.0005920927505940199,
    -0.004736950621008873,  0.026355121284723282,   -0.10996080189943314,
    -0.6319562196731567,    -1.130155086517334,     0.0003002688172273338};
// Below 0.93: x + x P(x^2). Above: 1 - e^Q(x), with Q = ln(1 - erf). Fitted for f32.
struct Erf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const auto c = [d](double v) { return hn::Set(d, static_cast<T<D>>(v)); };
    const V size = hn::Min(hn::Abs(x), c(4));
    const V z = hn::Mul(x, x);
    V p = hn::Zero(d), q = hn::Zero(d);
    for (double v : kErfSmall) p = hn::MulAdd(p, z, c(v));
    for (double v : kErfLarge) q = hn::MulAdd(q, size, c(v));
    const V large = hn::CopySign(hn::Sub(c(1), hn::Exp(d, q)), x);
    const V y = hn::IfThenElse(hn::Lt(size, c(0.93)), hn::MulAdd(x, p, x), large);
    return keep_nan(x, y);
  }
};

constexpr double kFar = 30000;
// Far from 0 the reduction modulo pi needs more digits than it has: libm, lane by lane.
template <class D, class V, class F>
HWY_INLINE V beyond(D d, V x, V y, F libm) {
  const V limit = hn::Set(d, static_cast<T<D>>(kFar));
  const auto near = hn::Le(hn::Abs(x), limit);
  if (HWY_LIKELY(hn::AllTrue(d, near))) return y;
  constexpr std::size_t kMax = HWY_MAX_BYTES / sizeof(T<D>);
  HWY_ALIGN T<D> from[kMax];
  HWY_ALIGN T<D> to[kMax];
  hn::Store(x, d, from);
  hn::Store(y, d, to);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i)
    if (!(std::abs(from[i]) <= static_cast<T<D>>(kFar))) to[i] = libm(from[i]);
  return hn::Load(d, to);
}

// Rounding must not carry a sine past 1: square roots of 1 - y^2 would fail.
template <class D, class V>
HWY_INLINE V within_one(D d, V y) {
  const V one = hn::Set(d, static_cast<T<D>>(1));
  return hn::Min(hn::Max(y, hn::Neg(one)), one);
}

struct Sin {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V y = keep_zero(d, x, within_one(d, hn::Sin(d, x)));
    return beyond(d, x, y, [](T<D> v) { return std::sin(v); });
  }
};
struct Cos {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V y = within_one(d, hn::Cos(d, x));
    return beyond(d, x, y, [](T<D> v) { return std::cos(v); });
  }
};

template <class F, class U>
void apply(const U* x, U* y, std::size_t n) {
  const hn::ScalableTag<U> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F()(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN U rest[HWY_MAX_BYTES / sizeof(U)] = {};
  std::copy(x + i, x + n, rest);
  hn::Store(F()(d, hn::Load(d, rest)), d, rest);
  std::copy_n(rest, n - i, y + i);
}

template <class U>
void apply_fn(SimdFn f, const U* x, U* y, std::size_t n) {
  switch (f) {
    case SimdFn::exp:
      return apply<Exp>(x, y, n);
    case SimdFn::expm1:
      return apply<Expm1>(x, y, n);
    case SimdFn::log:
      return apply<Log>(x, y, n);
    case SimdFn::log1p:
      return apply<Log1p>(x, y, n);
    case SimdFn::tanh:
      return apply<Tanh>(x, y, n);
    case SimdFn::sigmoid:
      return apply<Sigmoid>(x, y, n);
    case SimdFn::softplus:
      return apply<Softplus>(x, y, n);
    case SimdFn::erf:
      if constexpr (sizeof(U) == 4) return apply<Erf>(x, y, n);
      for (std::size_t i = 0; i < n; ++i) y[i] = std::erf(x[i]);
      return;
    case SimdFn::sin:
      return apply<Sin>(x, y, n);
    case SimdFn::cos:
      return apply<Cos>(x, y, n);
  }
}

bool ordinary(float a, float b) {
  return a > 0 && a <= std::numeric_limits<float>::max() &&
         std::abs(b) <= std::numeric_limits<float>::max();
}

// e^(b ln a) in double, which leaves f32 exact to its last digit; the rest is libm's.
void apply_pow(const float* a, const float* b, float* y, std::size_t n) {
  const hn::ScalableTag<double> d;
  constexpr std::size_t kMax = HWY_MAX_BYTES / sizeof(double);
  HWY_ALIGN double base[kMax], power[kMax];
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const std::size_t count = std::min(hn::Lanes(d), n - i);
    for (std::size_t l = 0; l < hn::Lanes(d); ++l) {
      const bool in = l < count && ordinary(a[i + l], b[i + l]);
      base[l] = in ? static_cast<double>(a[i + l]) : 1.0;
      power[l] = in ? static_cast<double>(b[i + l]) : 1.0;
    }
    const auto exponent = hn::Mul(hn::Load(d, power), hn::Log(d, hn::Load(d, base)));
    hn::Store(Exp()(d, exponent), d, base);
    for (std::size_t l = 0; l < count; ++l)
      y[i + l] = ordinary(a[i + l], b[i + l]) ? static_cast<float>(base[l])
                                              : std::pow(a[i + l], b[i + l]);
  }
}

}  // namespace

void simd_math_f32(SimdFn f, const float* x, float* y, std::size_t n) {
  apply_fn(f, x, y, n);
}
void simd_math_f64(SimdFn f, const double* x, double* y, std::size_t n) {
  apply_fn(f, x, y, n);
}
void simd_pow_f32(const float* a, const float* b, float* y, std::size_t n) {
  apply_pow(a, b, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(simd_math_f32);
HWY_EXPORT(simd_math_f64);
HWY_EXPORT(simd_pow_f32);

void simd_math(SimdFn f, const float* x, float* y, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(simd_math_f32)(f, x, y, n);
}
void simd_math(SimdFn f, const double* x, double* y, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(simd_math_f64)(f, x, y, n);
}
void simd_pow(const float* a, const float* b, float* y, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(simd_pow_f32)(a, b, y, n);
}
void simd_pow(const double* a, const double* b, double* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::pow(a[i], b[i]);
}

}  // namespace braintrace
#endif
