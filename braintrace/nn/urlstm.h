// SPDX-License-Identifier: Apache-2.0
#pragma once
// The LSTM cell with uniform refine gates.
#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

struct URLSTMCellOptions {
  Initializer w_init = init::xavier_normal(init::plain());
  Initializer state_init = init::zero();
  Activation activation = "tanh";
};

// With f, r, u, o = Wf, Wr, Wu, Wo of [x, h] (no biases) and one forget bias b:
// F = sigmoid(f + b);  R = sigmoid(r - b);  G = 2 R F + (1 - 2 R) F^2;
// c' = G c + (1 - G) act(u);  h' = sigmoid(o) act(c'). Returns h'.
// b starts at logit(U(1/H, 1 - 1/H)) and carries traces of its own, once per use.
class URLSTMCell : public Module {
 public:
  URLSTMCell(std::int64_t in_size, std::int64_t out_size, URLSTMCellOptions options = {});
  Value update(Value x) override;

  Linear Wu, Wf, Wr, Wo;
  ParamState bias;
  HiddenState c, h;

 private:
  Activation activation_;
};

}  // namespace braintrace::nn
