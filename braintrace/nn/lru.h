// SPDX-License-Identifier: Apache-2.0
#pragma once
// The linear recurrent unit: a complex diagonal recurrence, kept as two real states.
#include "braintrace/nn/linear.h"

namespace braintrace::nn {

struct LRUCellOptions {
  double r_min = 0, r_max = 1;  // |lambda| starts between these
  double max_phase = 6.28;      // arg(lambda) starts in [0, max_phase)
};

// a = exp(-exp(nu_log)), b = exp(theta_log), c = exp(gamma_log);
// re' = a cos(b) re - a sin(b) im + c (B_re x);
// im' = a sin(b) re + a cos(b) im + c (B_im x);
// y = C_re re' - C_im im' + D x. Returns y.
// gamma_log starts at log sqrt(1 - |lambda|^2). The vectors carry traces of their own.
class LRUCell : public Module {
 public:
  LRUCell(std::int64_t d_model, std::int64_t d_hidden, LRUCellOptions options = {});
  Value update(Value x) override;

  Linear B_re, B_im, C_re, C_im;
  ParamState theta_log, nu_log, gamma_log, D;
  HiddenState h_re, h_im;
};

}  // namespace braintrace::nn
