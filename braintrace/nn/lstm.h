// SPDX-License-Identifier: Apache-2.0
#pragma once
// The long short-term memory cell.
#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

struct LSTMCellOptions {
  Initializer w_init = init::xavier_normal(init::plain());
  Initializer b_init = init::zero();  // empty: no bias
  Initializer state_init = init::zero();
  Activation activation = "tanh";
};

// i, g, f, o = Wi, Wg, Wf, Wo of [x, h];
// c' = sigmoid(f + 1) c + sigmoid(i) act(g);  h' = sigmoid(o) act(c'). Returns h'.
// The 1 is part of the equation, not of the bias.
class LSTMCell : public Module {
 public:
  LSTMCell(std::int64_t in_size, std::int64_t out_size, LSTMCellOptions options = {});
  Value update(Value x) override;

  Linear Wi, Wg, Wf, Wo;
  HiddenState c, h;

 private:
  Activation activation_;
};

}  // namespace braintrace::nn
