// SPDX-License-Identifier: Apache-2.0
// The quadratic upstroke of QuaIF and AdQuaIF.
#include "braintrace/nn/qua_if.h"

#include "braintrace/nn/nonlinear_if_impl.h"

namespace braintrace::nn {
namespace {

template <class Options>
Drift quadratic(const Options& o, const Value& v) {
  const Value above_rest = v - o.V_rest.with(v);
  const Value above_critical = v - o.V_c.with(v);
  return {scaled(above_rest * above_critical, o.c),
          scaled(above_rest + above_critical, o.c)};
}

template <class Options>
void check_qua_if(const Options& o, const Shape& size) {
  require_finite(Options::kind, "V_c", o.V_c, size);
  require_finite(Options::kind, "c", o.c, size);
}

}  // namespace

Drift QuaIFOptions::upstroke(const Value& V) const { return quadratic(*this, V); }
void QuaIFOptions::require_upstroke(const Shape& size) const {
  check_qua_if(*this, size);
}

Drift AdQuaIFOptions::upstroke(const Value& V) const { return quadratic(*this, V); }
void AdQuaIFOptions::require_upstroke(const Shape& size) const {
  check_qua_if(*this, size);
}

template class NonlinearIF<QuaIFOptions>;
template class AdaptiveIF<AdQuaIFOptions>;

}  // namespace braintrace::nn
