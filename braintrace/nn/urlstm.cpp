// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/urlstm.h"

#include <cmath>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

LinearOptions linear(const URLSTMCellOptions& o) {
  return {.w_init = o.w_init, .b_init = nullptr};
}

// logit(u), u ~ U(1/n, 1 - 1/n): forget gates spread evenly over their range.
Array draw_forget_bias(RngKey key, const Shape& shape, DType dtype) {
  const double edge = 1.0 / static_cast<double>(shape[0]);
  Array a(DType::f64, shape);
  double* p = a.mutable_data<double>();
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    const double u =
        shape[0] < 3
            ? 0.5
            : edge + (1 - 2 * edge) * uniform_at(key, static_cast<std::uint64_t>(i));
    p[i] = -std::log(1 / u - 1);
  }
  return a.astype(dtype);
}

}  // namespace

URLSTMCell::URLSTMCell(std::int64_t in_size, std::int64_t out_size,
                       URLSTMCellOptions options)
    : Wu(internal::joined_size("URLSTMCell", in_size, out_size), out_size,
         linear(options)),
      Wf(in_size + out_size, out_size, linear(options)),
      Wr(in_size + out_size, out_size, linear(options)),
      Wo(in_size + out_size, out_size, linear(options)),
      bias({out_size}, draw_forget_bias),
      c({out_size}, options.state_init),
      h({out_size}, options.state_init),
      activation_(options.activation) {
  add("Wu", Wu);
  add("Wf", Wf);
  add("Wr", Wr);
  add("Wo", Wo);
  add("bias", bias);
  add("c", c);
  add("h", h);
}

Value URLSTMCell::update(Value x) {
  internal::require_features("URLSTMCell", x, Wu.in_size() - Wu.out_size());
  const Value joined = concat({x, h.value()});
  const Value old = c.value();
  const Value f = Wf(joined);
  const Value r = Wr(joined);
  const Value u = Wu(joined);
  const Value o = Wo(joined);
  const Value forget = sigmoid(f + element_wise(bias.value()));
  const Value refine = sigmoid(r - element_wise(bias.value()));
  const Value gate = 2 * refine * forget + (1 - 2 * refine) * forget * forget;
  const Value next = gate * old + (1 - gate) * activation_(u);
  const Value out = sigmoid(o) * activation_(next);
  h.set(out);
  c.set(next);
  return out;
}

}  // namespace braintrace::nn
