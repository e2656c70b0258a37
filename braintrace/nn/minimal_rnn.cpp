// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/minimal_rnn.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

LinearOptions linear(const MinimalRNNCellOptions& o) {
  return {.w_init = o.w_init, .b_init = o.b_init};
}

}  // namespace

MinimalRNNCell::MinimalRNNCell(std::int64_t in_size, std::int64_t out_size,
                               MinimalRNNCellOptions options)
    : phi(options.phi),
      W_u(2 * internal::positive("MinimalRNNCell", "out_size", out_size), out_size,
          linear(options)),
      h({out_size}, options.state_init),
      in_size_(internal::positive("MinimalRNNCell", "in_size", in_size)) {
  if (!phi) phi = std::make_shared<Linear>(in_size, out_size, linear(options));
  add("phi", *phi);
  add("W_u", W_u);
  add("h", h);
}

Value MinimalRNNCell::update(Value x) {
  internal::require_features("MinimalRNNCell", x, in_size_);
  const Value z = (*phi)(x);
  const Value old = h.value();
  const Value f = sigmoid(W_u(concat({z, old})));
  const Value next = f * old + (1 - f) * z;
  h.set(next);
  return next;
}

}  // namespace braintrace::nn
