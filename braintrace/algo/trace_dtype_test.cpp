// SPDX-License-Identifier: Apache-2.0
// Traces in half the memory, for every way of taking gradients.
#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/learner.h"

namespace trace_dtype_test {

using namespace braintrace;

TEST_CASE("traces in bf16 stay bf16 step by step and in windows") {
  const std::vector<Algorithm> rules = {
      D_RTRL{.trace_dtype = DType::bf16},
      EProp{.kappa_filter_decay = 0.5, .trace_dtype = DType::bf16}};
  for (const Algorithm& rule : rules)
    for (std::int64_t window : {1, 2}) {
      CAPTURE(rule.name);
      CAPTURE(window);
      nn::GRUCell cell(3, 4);
      Learner l = compile(cell, rule, zeros({3}), {.seed = 1});
      const Array xs = random_normal(rng_key(2), {5, 3}, DType::f32);
      for (int call = 0; call < 2; ++call)
        CHECK_NOTHROW(
            l.etrace_grad(xs, xs, [&](const Value& x, const Value&) { return sum(l(x)); },
                          {.window = window}));
    }
}

}  // namespace trace_dtype_test
