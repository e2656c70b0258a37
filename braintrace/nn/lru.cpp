// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/lru.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

LinearOptions row_scaled(std::int64_t rows) {
  return {.w_init = init::normal(0, 1 / std::sqrt(static_cast<double>(rows))),
          .b_init = nullptr};
}

// f(u) for u ~ U[0, 1).
template <class F>
Array draw(RngKey key, const Shape& shape, DType dtype, F f) {
  Array a(DType::f64, shape);
  double* p = a.mutable_data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i)
    p[i] = f(uniform_at(key, static_cast<std::uint64_t>(i)));
  return a.astype(dtype);
}

// |lambda|^2, uniform between the squares of the radii and away from 0 and 1, where the
// logarithms below end.
double squared_radius(double u, const LRUCellOptions& o) {
  const double low = o.r_min * o.r_min, high = o.r_max * o.r_max;
  return std::clamp(low + u * (high - low), 1e-6, 1 - 1e-6);
}

double nu_of(double squared) { return std::log(-0.5 * std::log(squared)); }

Initializer draw_gamma(LRUCellOptions o) {
  return [o](RngKey key, const Shape& shape, DType dtype) {
    return draw(key, shape, dtype,
                [&](double u) { return 0.5 * std::log(1 - squared_radius(u, o)); });
  };
}

// The radii that gamma was made from; own ones when it has no value yet. States start in
// the order of their names, so gamma_log is there first.
Initializer nu_matching(const ParamState& gamma, LRUCellOptions o) {
  return [&gamma, o](RngKey key, const Shape& shape, DType dtype) {
    if (!gamma.has_value())
      return draw(key, shape, dtype,
                  [&](double u) { return nu_of(squared_radius(u, o)); });
    Array a = gamma.stored().astype(DType::f64);
    double* p = a.mutable_data<double>();
    for (std::int64_t i = 0; i < a.size(); ++i)
      p[i] = nu_of(std::clamp(1 - std::exp(2 * p[i]), 1e-6, 1 - 1e-6));
    return a.astype(dtype);
  };
}

Initializer draw_theta(LRUCellOptions o) {
  return [o](RngKey key, const Shape& shape, DType dtype) {
    return draw(key, shape, dtype,
                [&](double u) { return std::log(o.max_phase * std::max(u, 1e-12)); });
  };
}

void check_options(const LRUCellOptions& o) {
  BT_REQUIRE(o.r_min >= 0 && o.r_min <= o.r_max && o.r_max <= 1,
             fmt::format("LRUCell: needs 0 <= r_min <= r_max <= 1, got {} and {}",
                         o.r_min, o.r_max));
  BT_REQUIRE(
      o.max_phase > 0 && std::isfinite(o.max_phase),
      fmt::format("LRUCell: max_phase must be > 0 and finite, got {}", o.max_phase));
}

}  // namespace

LRUCell::LRUCell(std::int64_t d_model, std::int64_t d_hidden, LRUCellOptions options)
    : B_re(internal::positive("LRUCell", "d_model", d_model),
           internal::positive("LRUCell", "d_hidden", d_hidden),
           row_scaled(internal::positive("LRUCell", "d_model", d_model))),
      B_im(d_model, d_hidden, row_scaled(d_model)),
      C_re(d_hidden, d_model, row_scaled(d_hidden)),
      C_im(d_hidden, d_model, row_scaled(d_hidden)),
      theta_log({d_hidden}, draw_theta(options)),
      nu_log({d_hidden}, nu_matching(gamma_log, options)),
      gamma_log({d_hidden}, draw_gamma(options)),
      D({d_model}, init::normal()),
      h_re({d_hidden}),
      h_im({d_hidden}) {
  check_options(options);
  add("B_re", B_re);
  add("B_im", B_im);
  add("C_re", C_re);
  add("C_im", C_im);
  add("theta_log", theta_log);
  add("nu_log", nu_log);
  add("gamma_log", gamma_log);
  add("D", D);
  add("h_re", h_re);
  add("h_im", h_im);
}

Value LRUCell::update(Value x) {
  internal::require_features("LRUCell", x, B_re.in_size());
  const Value re = h_re.value();
  const Value im = h_im.value();
  const Value a = exp(-exp(element_wise(nu_log.value())));
  const Value b = exp(element_wise(theta_log.value()));
  const Value c = exp(element_wise(gamma_log.value()));
  const Value a_cos = a * cos(b);
  const Value a_sin = a * sin(b);
  const Value drive_re = c * B_re(x);
  const Value next_re = a_cos * re - a_sin * im + drive_re;
  const Value drive_im = c * B_im(x);
  const Value next_im = a_sin * re + a_cos * im + drive_im;
  h_re.set(next_re);
  h_im.set(next_im);
  const Value real = C_re(next_re);
  const Value imaginary = C_im(next_im);
  return real - imaginary + x * element_wise(D.value());
}

}  // namespace braintrace::nn
