// SPDX-License-Identifier: Apache-2.0
#pragma once
// The chaos-free network cell.
#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

// f = sigmoid(Wf [x, h]);  i = sigmoid(Wi [x, h]);  h' = f act(h) + i act(Wh x).
// Returns h'.
class CFNCell : public Module {
 public:
  CFNCell(std::int64_t in_size, std::int64_t out_size, GatedCellOptions options = {});
  Value update(Value x) override;

  Linear Wf, Wi, Wh;
  HiddenState h;

 private:
  Activation activation_;
};

}  // namespace braintrace::nn
