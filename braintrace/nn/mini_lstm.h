// SPDX-License-Identifier: Apache-2.0
#pragma once
// The LSTM with one state and no activation.
#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

// h' = sigmoid(W_f [x, h]) h + sigmoid(W_i [x, h]) (W_x x). Returns h'.
class MiniLSTM : public Module {
 public:
  MiniLSTM(std::int64_t in_size, std::int64_t out_size, MinimalCellOptions options = {});
  Value update(Value x) override;

  Linear W_x, W_f, W_i;
  HiddenState h;
};

}  // namespace braintrace::nn
