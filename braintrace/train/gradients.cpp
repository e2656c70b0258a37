// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/gradients.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace braintrace {
namespace {

// f of every entry.
template <class F>
Array mapped(const Array& a, F f) {
  Array out = Array::uninitialized(a.dtype(), a.shape());
  const Array packed = a.contiguous();
  visit_dtype(a.dtype(), [&]<class T>(T) {
    const T* from = packed.data<T>();
    T* to = out.mutable_data<T>();
    for (std::int64_t i = 0, n = a.size(); i < n; ++i)
      to[i] = static_cast<T>(f(static_cast<double>(from[i])));
  });
  return out;
}

void require_float(const char* who, const StateDict& grads) {
  for (const auto& [path, g] : grads)
    BT_REQUIRE_KIND(is_float(g.dtype()), ErrorKind::type,
                    fmt::format("{}: gradient '{}' must be f32 or f64, got {}", who, path,
                                to_string(g.dtype())));
}

Array sum_of(const std::string& path, const Array& a, const Array& b) {
  BT_REQUIRE(a.shape() == b.shape(),
             fmt::format("add_grads: '{}' has shapes {} and {}", path,
                         to_string(a.shape()), to_string(b.shape())));
  Array out = a.contiguous();
  const Array other = b.astype(a.dtype()).contiguous();
  visit_dtype(a.dtype(), [&]<class T>(T) {
    const T* from = other.data<T>();
    T* to = out.mutable_data<T>();
    for (std::int64_t i = 0, n = out.size(); i < n; ++i)
      to[i] = static_cast<T>(to[i] + from[i]);
  });
  return out;
}

}  // namespace

double global_norm(const StateDict& grads, double p) {
  require_float("global_norm", grads);
  BT_REQUIRE(p >= 1, fmt::format("global_norm: p must be >= 1, got {}", p));
  double total = 0;
  for (const auto& [path, g] : grads) {
    for (const double v : g.to_doubles()) {
      if (std::isinf(p)) {
        total = std::max(total, std::abs(v));
      } else {
        total += p == 2 ? v * v : std::pow(std::abs(v), p);
      }
    }
  }
  if (std::isinf(p)) return total;
  return p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
}

StateDict clip_grad_norm(const StateDict& grads, double max_norm, double p) {
  BT_REQUIRE(max_norm > 0,
             fmt::format("clip_grad_norm: max_norm must be > 0, got {}", max_norm));
  const double factor = max_norm / (global_norm(grads, p) + 1e-6);
  return factor >= 1 ? grads : scale_grads(grads, factor);
}

StateDict clip_grad_value(const StateDict& grads, double limit) {
  require_float("clip_grad_value", grads);
  BT_REQUIRE(limit > 0, fmt::format("clip_grad_value: limit must be > 0, got {}", limit));
  StateDict out;
  for (const auto& [path, g] : grads)
    out.emplace(path, mapped(g, [&](double v) { return std::clamp(v, -limit, limit); }));
  return out;
}

StateDict add_grads(const StateDict& a, const StateDict& b) {
  require_float("add_grads", a);
  require_float("add_grads", b);
  StateDict out = a;
  for (const auto& [path, g] : b) {
    const auto [it, added] = out.emplace(path, g);
    if (!added) it->second = sum_of(path, it->second, g);
  }
  return out;
}

StateDict scale_grads(const StateDict& grads, double factor) {
  require_float("scale_grads", grads);
  StateDict out;
  for (const auto& [path, g] : grads)
    out.emplace(path, mapped(g, [&](double v) { return v * factor; }));
  return out;
}

GradExpon::GradExpon(double decay) : decay_(decay) {
  BT_REQUIRE(decay > 0 && decay < 1,
             fmt::format("GradExpon: decay must lie in (0, 1), got {}", decay));
}

GradExpon GradExpon::with_tau(double tau, double dt) {
  BT_REQUIRE(tau > 0 && dt > 0,
             fmt::format("GradExpon: tau and dt must be > 0 ms, got {} and {}", tau, dt));
  return GradExpon(std::exp(-dt / tau));
}

const StateDict& GradExpon::update(const StateDict& grads) {
  value_ = add_grads(scale_grads(value_, decay_), grads);
  return value_;
}

}  // namespace braintrace
