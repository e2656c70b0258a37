// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/gru.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

GRUCell::GRUCell(std::int64_t in_size, std::int64_t out_size, GatedCellOptions options)
    : Wz(internal::joined_size("GRUCell", in_size, out_size), out_size, options.linear()),
      Wr(in_size + out_size, out_size, options.linear()),
      Wh(in_size + out_size, out_size, options.linear()),
      h({out_size}, options.state_init),
      activation_(options.activation) {
  add("Wz", Wz);
  add("Wr", Wr);
  add("Wh", Wh);
  add("h", h);
}

Value GRUCell::update(Value x) {
  internal::require_features("GRUCell", x, Wz.in_size() - Wz.out_size());
  const Value old = h.value();
  const Value joined = concat({x, old});
  const Value z = sigmoid(Wz(joined));
  const Value r = sigmoid(Wr(joined));
  const Value candidate = activation_(Wh(concat({x, r * old})));
  const Value next = (1 - z) * old + z * candidate;
  h.set(next);
  return next;
}

}  // namespace braintrace::nn
