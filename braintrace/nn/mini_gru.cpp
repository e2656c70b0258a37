// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/mini_gru.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

MiniGRU::MiniGRU(std::int64_t in_size, std::int64_t out_size, MinimalCellOptions options)
    : W_x(internal::positive("MiniGRU", "in_size", in_size),
          internal::positive("MiniGRU", "out_size", out_size), options.linear()),
      W_z(in_size + out_size, out_size, options.linear()),
      h({out_size}, options.state_init) {
  add("W_x", W_x);
  add("W_z", W_z);
  add("h", h);
}

Value MiniGRU::update(Value x) {
  internal::require_features("MiniGRU", x, W_x.in_size());
  const Value old = h.value();
  const Value z = sigmoid(W_z(concat({x, old})));
  const Value candidate = W_x(x);
  const Value next = (1 - z) * old + z * candidate;
  h.set(next);
  return next;
}

}  // namespace braintrace::nn
