// SPDX-License-Identifier: Apache-2.0
// The exponential upstroke of ExpIF and AdExIF.
#include "braintrace/nn/exp_if.h"

#include "braintrace/nn/nonlinear_if_impl.h"

namespace braintrace::nn {
namespace {

constexpr double max_exponent = 20;

template <class Options>
Drift exponential(const Options& o, const Value& v) {
  const Value exponent = div(v - o.V_T.with(v), o.delta_T.with(v));
  const Value e = exp(select(exponent < max_exponent, exponent, max_exponent));
  return {sub(o.V_rest.with(v), v) + scaled(e, o.delta_T),
          select(exponent < max_exponent, e, 0) - 1};
}

template <class Options>
void check_exp_if(const Options& o, const Shape& size) {
  require_positive(Options::kind, "delta_T", o.delta_T, size);
  require_finite(Options::kind, "V_T", o.V_T, size);
}

}  // namespace

Drift ExpIFOptions::upstroke(const Value& V) const { return exponential(*this, V); }
void ExpIFOptions::require_upstroke(const Shape& size) const {
  check_exp_if(*this, size);
}

Drift AdExIFOptions::upstroke(const Value& V) const { return exponential(*this, V); }
void AdExIFOptions::require_upstroke(const Shape& size) const {
  check_exp_if(*this, size);
}

template class NonlinearIF<ExpIFOptions>;
template class AdaptiveIF<AdExIFOptions>;

}  // namespace braintrace::nn
