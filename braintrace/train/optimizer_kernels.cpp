// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set: plain loops, of which the compiler makes vectors.
#include "braintrace/train/optimizer_kernels.h"

#include <algorithm>
#include <cmath>

#include "braintrace/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/train/optimizer_kernels.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

// Elements in their own type. No two of the arrays overlap.
template <class T>
struct Part {
  T *w, *m, *v, *mean, *v_max;
  const T* g;
  std::int64_t n, t;
  T lr;

  Part(const Update& u, std::int64_t first, std::int64_t last)
      : n(last - first), t(u.t), lr(static_cast<T>(u.lr)) {
    const auto from = [&](void* p) { return p ? static_cast<T*>(p) + first : nullptr; };
    w = from(u.w), m = from(u.m), v = from(u.v);
    mean = from(u.mean), v_max = from(u.v_max);
    g = static_cast<const T*>(u.g) + first;
  }
};

template <class T, bool kMomentum, bool kNesterov>
void sgd(const SGD& r, const Part<T>& p) {
  const T mu = static_cast<T>(r.momentum), wd = static_cast<T>(r.weight_decay), lr = p.lr;
  T *w = p.w, *m = p.m;
  const T* grad = p.g;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < p.n; ++i) {
    const T g = grad[i] + wd * w[i];
    T step = g;
    if constexpr (kMomentum) {
      const T moved = g + mu * m[i];
      m[i] = moved;
      step = kNesterov ? g + mu * moved : moved;
    }
    w[i] -= lr * step;
  }
}
template <class T>
void move(const SGD& r, const Part<T>& p) {
  if (p.m == nullptr) return sgd<T, false, false>(r, p);
  r.nesterov ? sgd<T, true, true>(r, p) : sgd<T, true, false>(r, p);
}

template <class T, bool kLargest>
void adam(const AdamForm& r, const Part<T>& p) {
  const T b1 = static_cast<T>(r.beta1), b2 = static_cast<T>(r.beta2), lr = p.lr;
  const T eps = static_cast<T>(r.eps);
  const T coupled = static_cast<T>(r.coupled), decoupled = static_cast<T>(r.decoupled);
  const double t = static_cast<double>(p.t);
  const T c1 = static_cast<T>(1 - std::pow(r.beta1, t));
  const T c2 = static_cast<T>(1 - std::pow(r.beta2, t));
  T *w = p.w, *m = p.m, *v = p.v, *v_max = p.v_max;
  const T* grad = p.g;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < p.n; ++i) {
    const T g = grad[i] + coupled * w[i];
    const T first = b1 * m[i] + (1 - b1) * g, second = b2 * v[i] + (1 - b2) * g * g;
    m[i] = first;
    v[i] = second;
    T power = second / c2;
    if constexpr (kLargest) v_max[i] = power = std::max(v_max[i], power);
    const T step = (first / c1) / (std::sqrt(power) + eps) + decoupled * w[i];
    w[i] -= lr * step;
  }
}
template <class T>
void move(const AdamForm& r, const Part<T>& p) {
  r.amsgrad ? adam<T, true>(r, p) : adam<T, false>(r, p);
}

template <class T, bool kCentered, bool kMomentum>
void rmsprop(const RMSprop& r, const Part<T>& p) {
  const T alpha = static_cast<T>(r.alpha), eps = static_cast<T>(r.eps), lr = p.lr;
  const T mu = static_cast<T>(r.momentum), wd = static_cast<T>(r.weight_decay);
  T *w = p.w, *m = p.m, *v = p.v, *mean = p.mean;
  const T* grad = p.g;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < p.n; ++i) {
    const T g = grad[i] + wd * w[i];
    T power = alpha * v[i] + (1 - alpha) * g * g;
    v[i] = power;
    if constexpr (kCentered) {
      const T middle = alpha * mean[i] + (1 - alpha) * g;
      mean[i] = middle;
      power = std::max(T(0), power - middle * middle);
    }
    T step = g / std::sqrt(power + eps);
    if constexpr (kMomentum) m[i] = step = step + mu * m[i];
    w[i] -= lr * step;
  }
}
template <class T>
void move(const RMSprop& r, const Part<T>& p) {
  if (p.mean != nullptr)
    return p.m != nullptr ? rmsprop<T, true, true>(r, p) : rmsprop<T, true, false>(r, p);
  p.m != nullptr ? rmsprop<T, false, true>(r, p) : rmsprop<T, false, false>(r, p);
}

template <class T>
void move(const Lion& r, const Part<T>& p) {
  const T b1 = static_cast<T>(r.beta1), b2 = static_cast<T>(r.beta2), lr = p.lr;
  const T wd = static_cast<T>(r.weight_decay);
  T *w = p.w, *m = p.m;
  const T* g = p.g;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < p.n; ++i) {
    const T mixed = b1 * m[i] + (1 - b1) * g[i];
    const T direction =
        std::isnan(mixed) ? mixed : static_cast<T>((mixed > 0) - (mixed < 0));
    m[i] = b2 * m[i] + (1 - b2) * g[i];
    w[i] -= lr * (direction + wd * w[i]);
  }
}

}  // namespace

void move_all(const RuleForm& rule, const Update& u, std::int64_t first,
              std::int64_t last) {
  std::visit(
      [&](const auto& r) {
        u.dtype == DType::f64 ? move(r, Part<double>(u, first, last))
                              : move(r, Part<float>(u, first, last));
      },
      rule);
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(move_all);

void move_elements(const RuleForm& rule, const Update& update, std::int64_t first,
                   std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(move_all)(rule, update, first, last);
}

void*& Update::moment(std::string_view name) {
  if (name == "m") return m;
  if (name == "v") return v;
  BT_INVARIANT(name == "mean" || name == "v_max");
  return name == "mean" ? mean : v_max;
}

RuleForm form_of(const UpdateRule& rule) {
  if (const auto* r = std::get_if<SGD>(&rule)) return *r;
  if (const auto* r = std::get_if<RMSprop>(&rule)) return *r;
  if (const auto* r = std::get_if<Lion>(&rule)) return *r;
  if (const auto* r = std::get_if<AdamW>(&rule))
    return AdamForm{r->beta1, r->beta2, r->eps, 0, r->weight_decay, false};
  const auto& r = std::get<Adam>(rule);
  return AdamForm{r.beta1, r.beta2, r.eps, r.weight_decay, 0, r.amsgrad};
}

}  // namespace braintrace
#endif
