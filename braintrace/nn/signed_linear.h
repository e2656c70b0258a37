// SPDX-License-Identifier: Apache-2.0
#pragma once
// A dense layer whose weights keep their sign (Dale's law).
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

struct SignedWLinearOptions {
  Initializer w_init = init::kaiming_normal();
  std::optional<Array> w_sign = {};  // broadcast to the weight; absent: all positive
};

// y = x (|W| * sign). No bias. The sign belongs to the op, so traces see the effective
// weight; d|w|/dw at 0 is 0. Parameter 'weight' [in, out].
class SignedWLinear : public Module {
 public:
  SignedWLinear(std::int64_t in_size, std::int64_t out_size,
                SignedWLinearOptions options = {});
  Value update(Value x) override;

  ParamState weight;

 private:
  std::int64_t in_size_;
  std::optional<Array> sign_;
};

}  // namespace braintrace::nn
