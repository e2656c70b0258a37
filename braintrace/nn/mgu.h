// SPDX-License-Identifier: Apache-2.0
#pragma once
// The minimal gated unit.
#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

// f = sigmoid(Wf [x, h]);  n = act(Wh [x, f * h]);  h' = (1 - f) h + f n. Returns h'.
class MGUCell : public Module {
 public:
  MGUCell(std::int64_t in_size, std::int64_t out_size, GatedCellOptions options = {});
  Value update(Value x) override;

  Linear Wf, Wh;
  HiddenState h;

 private:
  Activation activation_;
};

}  // namespace braintrace::nn
