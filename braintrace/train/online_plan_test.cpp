// SPDX-License-Identifier: Apache-2.0
// Single steps at sizes where traces are updated by kernels of their own: the interpreter
// is their judge.
#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace online_plan_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kBatch = 8, kIn = 10, kSteps = 3;

// The gradients of some steps in a row.
std::vector<StateDict> gradients(Module& model, const Algorithm& rule,
                                 ExecutorKind executor) {
  Learner l(model, rule, {zeros({kBatch, kIn})},
            {.batch_size = kBatch, .seed = 3, .dtype = DType::f64, .executor = executor});
  std::vector<StateDict> out;
  std::optional<LossHandle> loss;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const RngKey key = fold_in(rng_key(5), static_cast<std::uint64_t>(t));
    const std::vector<Array> args = {random_normal(key, {kBatch, kIn}, DType::f64)};
    if (!loss)
      loss = l.trace_loss(
          [&](const Values& in) {
            return LossResult{.loss = sum(square(l(in[0]))), .results = {}};
          },
          args);
    out.push_back(*l.step_grad(args, *loss).gradients);
  }
  return out;
}

}  // namespace

TEST_CASE("large traces updated step by step give the interpreter's gradients") {
  for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(EProp{})}) {
    CAPTURE(rule.name);
    nn::GRUCell fast(kIn, 96), plain(kIn, 96);
    const auto got = gradients(fast, rule, ExecutorKind::plan);
    const auto want = gradients(plain, rule, ExecutorKind::interpreter);
    for (std::size_t t = 0; t < want.size(); ++t)
      for (const auto& [leaf, g] : want[t]) {
        CAPTURE(leaf);
        testing::check_close(leaf, got[t].at(leaf), g, tol::f64);
      }
    for (const auto& [leaf, g] : want.back()) {
      CAPTURE(leaf);
      CHECK(testing::worst_error(g, zeros(g.shape(), g.dtype())).error > 1e-4);
    }
  }
}

}  // namespace online_plan_test
