// SPDX-License-Identifier: Apache-2.0
#pragma once
// The minimal recurrent network cell.
#include <memory>

#include "braintrace/nn/cell_options.h"

namespace braintrace::nn {

struct MinimalRNNCellOptions {
  Initializer w_init = init::orthogonal();
  Initializer b_init = init::zero();  // empty: no bias
  Initializer state_init = init::zero();
  std::shared_ptr<Module> phi = {};  // maps x to out_size entries; default: Linear
};

// z = phi(x);  f = sigmoid(W_u [z, h]);  h' = f h + (1 - f) z. Returns h'.
class MinimalRNNCell : public Module {
 public:
  MinimalRNNCell(std::int64_t in_size, std::int64_t out_size,
                 MinimalRNNCellOptions options = {});
  Value update(Value x) override;

  std::shared_ptr<Module> phi;
  Linear W_u;
  HiddenState h;

 private:
  std::int64_t in_size_;
};

}  // namespace braintrace::nn
