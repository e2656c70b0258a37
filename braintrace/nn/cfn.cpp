// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/cfn.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

CFNCell::CFNCell(std::int64_t in_size, std::int64_t out_size, GatedCellOptions options)
    : Wf(internal::joined_size("CFNCell", in_size, out_size), out_size, options.linear()),
      Wi(in_size + out_size, out_size, options.linear()),
      Wh(in_size, out_size, options.linear()),
      h({out_size}, options.state_init),
      activation_(options.activation) {
  add("Wf", Wf);
  add("Wi", Wi);
  add("Wh", Wh);
  add("h", h);
}

Value CFNCell::update(Value x) {
  internal::require_features("CFNCell", x, Wh.in_size());
  const Value old = h.value();
  const Value joined = concat({x, old});
  const Value f = sigmoid(Wf(joined));
  const Value i = sigmoid(Wi(joined));
  const Value driven = i * activation_(Wh(x));
  const Value next = f * activation_(old) + driven;
  h.set(next);
  return next;
}

}  // namespace braintrace::nn
