// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step of dx/dt = f(x), exact in the linear part of each unit:
//   x' = x + dt phi(dt J) f(x),   J = df_i/dx_i,   phi(z) = (e^z - 1) / z.
// For f = (c - x) / tau this is exactly x e^{-dt/tau} + c (1 - e^{-dt/tau}). Coupling
// between units enters as plain Euler. J is differentiated like everything else.
#include "braintrace/ir/value.h"
#include "braintrace/nn/coefficient.h"

namespace braintrace::nn {

// f at x, and its diagonal derivative there (absent: zero).
struct Drift {
  Value f;
  Tangent slope = {};
};

Value exp_euler(const Value& x, const Drift& drift, double dt);

// dx/dt = (target - x) / tau in closed form; `left` is decay_of(dt, tau).
Value relax(const Value& x, const Value& target, const Coefficient& left);
Value relax(const Value& x, const Coefficient& target, const Coefficient& left);

// (e^z - 1) / z, a series where |z| is small; smooth in both directions of AD.
Value phi(const Value& z);

}  // namespace braintrace::nn
