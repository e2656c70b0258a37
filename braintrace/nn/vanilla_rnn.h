// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plain recurrent cell.
#include "braintrace/nn/activation.h"
#include "braintrace/nn/linear.h"

namespace braintrace::nn {

struct VanillaRNNCellOptions {
  Initializer state_init = init::zero();
  Initializer w_init = init::xavier_normal(init::plain());
  Initializer b_init = init::zero();  // empty: no bias
  Activation activation = "relu";
};

// h' = act(W [x, h] + b). Returns h'.
class VanillaRNNCell : public Module {
 public:
  VanillaRNNCell(std::int64_t in_size, std::int64_t out_size,
                 VanillaRNNCellOptions options = {});
  Value update(Value x) override;

  Linear W;
  HiddenState h;

 private:
  Activation activation_;
};

using ValinaRNNCell = VanillaRNNCell;  // the name existing models use

}  // namespace braintrace::nn
