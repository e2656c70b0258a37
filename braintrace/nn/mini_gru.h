// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GRU without reset gate and activation.
#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

// z = sigmoid(W_z [x, h]);  h' = (1 - z) h + z (W_x x). Returns h'.
class MiniGRU : public Module {
 public:
  MiniGRU(std::int64_t in_size, std::int64_t out_size, MinimalCellOptions options = {});
  Value update(Value x) override;

  Linear W_x, W_z;
  HiddenState h;
};

}  // namespace braintrace::nn
