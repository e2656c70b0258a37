// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/readout.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

// exp(-dt / tau), element by element.
Array decay_of(const char* who, const Array& tau, double dt, std::int64_t out) {
  BT_REQUIRE(dt > 0, fmt::format("{}: dt must be > 0 ms, got {}", who, dt));
  internal::require_broadcasts(who, "tau", tau.shape(), {out});
  Array a = tau.astype(DType::f64);
  double* p = a.mutable_data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i) {
    BT_REQUIRE(p[i] > 0, fmt::format("{}: tau must be > 0 ms, got {}", who, p[i]));
    p[i] = std::exp(-dt / p[i]);
  }
  return a;
}

}  // namespace

LeakyRateReadout::LeakyRateReadout(std::int64_t in_size, std::int64_t out_size,
                                   LeakyRateReadoutOptions options)
    : W({internal::positive("LeakyRateReadout", "in_size", in_size),
         internal::positive("LeakyRateReadout", "out_size", out_size)},
        options.w_init),
      r({out_size}, options.r_init),
      in_size_(in_size),
      decay_(decay_of("LeakyRateReadout", options.tau, options.dt, out_size)) {
  add("W", W);
  add("r", r);
}

Value LeakyRateReadout::update(Value x) {
  internal::require_features("LeakyRateReadout", x, in_size_);
  const Value old = r.value();
  const Value next = astype(decay_, old.dtype()) * old + matmul(x, W.value());
  r.set(next);
  return next;
}

}  // namespace braintrace::nn
