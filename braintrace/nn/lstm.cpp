// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/lstm.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

LinearOptions linear(const LSTMCellOptions& o) {
  return {.w_init = o.w_init, .b_init = o.b_init};
}

}  // namespace

LSTMCell::LSTMCell(std::int64_t in_size, std::int64_t out_size, LSTMCellOptions options)
    : Wi(internal::joined_size("LSTMCell", in_size, out_size), out_size, linear(options)),
      Wg(in_size + out_size, out_size, linear(options)),
      Wf(in_size + out_size, out_size, linear(options)),
      Wo(in_size + out_size, out_size, linear(options)),
      c({out_size}, options.state_init),
      h({out_size}, options.state_init),
      activation_(options.activation) {
  add("Wi", Wi);
  add("Wg", Wg);
  add("Wf", Wf);
  add("Wo", Wo);
  add("c", c);
  add("h", h);
}

// h is read before c: the order of first touch is the order inside the hidden group.
Value LSTMCell::update(Value x) {
  internal::require_features("LSTMCell", x, Wi.in_size() - Wi.out_size());
  const Value joined = concat({x, h.value()});
  const Value old = c.value();
  const Value i = Wi(joined);
  const Value g = Wg(joined);
  const Value f = Wf(joined);
  const Value o = Wo(joined);
  const Value next = sigmoid(f + 1) * old + sigmoid(i) * activation_(g);
  const Value out = sigmoid(o) * activation_(next);
  h.set(out);
  c.set(next);
  return out;
}

}  // namespace braintrace::nn
