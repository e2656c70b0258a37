// SPDX-License-Identifier: Apache-2.0
// Results do not depend on the number of threads.
#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/run/plan.h"
#include "braintrace/transforms/vjp.h"

namespace plan_threads_test {

using namespace braintrace;

namespace {

// Work enough for several threads: products, chains, reductions, a loop around them.
Graph heavy_program(DType dtype) {
  const auto builder = Builder::create();
  const auto input = [&](Shape s) { return builder->input({dtype, std::move(s)}); };
  const Value xs = input({5, 64, 128}), h = input({64, 256});
  const Value w = input({128, 256}), u = input({256, 256});
  const auto body = [&](const Values& in) {
    const Value next = tanh(dot(in[1], w) + dot(in[0], u));
    return Values{next, softmax(next, 1)};
  };
  const ScanResult r = scan(body, {h}, {xs});
  const Value y = r.ys[0];
  return builder->finish(Values{sum(y * exp(y)), max(y), sum(y, {.axes = {0, 1}})});
}

Array numbers(const Type& t, int seed) {
  Array a(DType::f64, t.shape);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.mutable_data<double>()[i] =
        static_cast<double>((i * 7919 + seed) % 1009) * 2e-4 - 0.1;
  return a.astype(t.dtype);
}

}  // namespace

TEST_CASE("one, two and four threads give the same bits, also when repeated") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Graph g = value_and_grad(heavy_program(dtype), {true, true, true, true});
    std::vector<Array> in, want;
    for (const Type& t : g.input_types())
      in.push_back(numbers(t, static_cast<int>(in.size())));
    Plan(g, {.threads = 1}).run(in, want);
    for (const int threads : {2, 4}) {
      Plan plan(g, {.threads = threads});
      std::vector<Array> got;
      for (int repeat = 0; repeat < 2; ++repeat) {
        plan.run(in, got);
        for (std::size_t i = 0; i < want.size(); ++i) {
          CAPTURE(threads);
          CAPTURE(i);
          CHECK(got[i] == want[i]);
        }
      }
    }
  }
}

}  // namespace plan_threads_test
