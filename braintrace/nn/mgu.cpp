// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/mgu.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

MGUCell::MGUCell(std::int64_t in_size, std::int64_t out_size, GatedCellOptions options)
    : Wf(internal::joined_size("MGUCell", in_size, out_size), out_size, options.linear()),
      Wh(in_size + out_size, out_size, options.linear()),
      h({out_size}, options.state_init),
      activation_(options.activation) {
  add("Wf", Wf);
  add("Wh", Wh);
  add("h", h);
}

Value MGUCell::update(Value x) {
  internal::require_features("MGUCell", x, Wf.in_size() - Wf.out_size());
  const Value old = h.value();
  const Value f = sigmoid(Wf(concat({x, old})));
  const Value candidate = activation_(Wh(concat({x, f * old})));
  const Value next = (1 - f) * old + f * candidate;
  h.set(next);
  return next;
}

}  // namespace braintrace::nn
