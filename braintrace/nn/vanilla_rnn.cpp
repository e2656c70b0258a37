// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/vanilla_rnn.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

VanillaRNNCell::VanillaRNNCell(std::int64_t in_size, std::int64_t out_size,
                               VanillaRNNCellOptions options)
    : W(internal::joined_size("VanillaRNNCell", in_size, out_size), out_size,
        {.w_init = options.w_init, .b_init = options.b_init}),
      h({out_size}, options.state_init),
      activation_(options.activation) {
  add("W", W);
  add("h", h);
}

Value VanillaRNNCell::update(Value x) {
  internal::require_features("VanillaRNNCell", x, W.in_size() - W.out_size());
  const Value next = activation_(W(concat({x, h.value()})));
  h.set(next);
  return next;
}

}  // namespace braintrace::nn
