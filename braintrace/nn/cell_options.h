// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options the gated cells share.
#include "braintrace/nn/activation.h"
#include "braintrace/nn/linear.h"

namespace braintrace::nn {

struct GatedCellOptions {
  Initializer w_init = init::orthogonal();
  Initializer b_init = init::zero();  // empty: no bias
  Initializer state_init = init::zero();
  Activation activation = "tanh";

  LinearOptions linear() const { return {.w_init = w_init, .b_init = b_init}; }
};

// Cells whose equation has no free activation.
struct MinimalCellOptions {
  Initializer w_init = init::orthogonal();
  Initializer b_init = init::zero();  // empty: no bias
  Initializer state_init = init::zero();

  LinearOptions linear() const { return {.w_init = w_init, .b_init = b_init}; }
};

}  // namespace braintrace::nn
