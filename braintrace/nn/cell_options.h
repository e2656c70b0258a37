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
};

// LSTM cells start from Xavier draws instead.
struct LSTMCellOptions {
  Initializer w_init = init::xavier_normal(init::plain());
  Initializer b_init = init::zero();
  Initializer state_init = init::zero();
  Activation activation = "tanh";
};

}  // namespace braintrace::nn
