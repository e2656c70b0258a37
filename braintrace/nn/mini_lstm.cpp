// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/mini_lstm.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

MiniLSTM::MiniLSTM(std::int64_t in_size, std::int64_t out_size,
                   MinimalCellOptions options)
    : W_x(internal::positive("MiniLSTM", "in_size", in_size),
          internal::positive("MiniLSTM", "out_size", out_size), options.linear()),
      W_f(in_size + out_size, out_size, options.linear()),
      W_i(in_size + out_size, out_size, options.linear()),
      h({out_size}, options.state_init) {
  add("W_x", W_x);
  add("W_f", W_f);
  add("W_i", W_i);
  add("h", h);
}

Value MiniLSTM::update(Value x) {
  internal::require_features("MiniLSTM", x, W_x.in_size());
  const Value old = h.value();
  const Value joined = concat({x, old});
  const Value f = sigmoid(W_f(joined));
  const Value i = sigmoid(W_i(joined));
  const Value candidate = W_x(x);
  const Value next = f * old + i * candidate;
  h.set(next);
  return next;
}

}  // namespace braintrace::nn
