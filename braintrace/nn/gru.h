// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gated recurrent unit.
#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

// z = sigmoid(Wz [x, h]);  r = sigmoid(Wr [x, h]);  n = act(Wh [x, r * h]);
// h' = (1 - z) h + z n. Returns h'.
class GRUCell : public Module {
 public:
  GRUCell(std::int64_t in_size, std::int64_t out_size, GatedCellOptions options = {});
  Value update(Value x) override;

  Linear Wz, Wr, Wh;
  HiddenState h;

 private:
  Activation activation_;
};

}  // namespace braintrace::nn
