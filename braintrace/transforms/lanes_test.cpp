// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/lanes.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/jacobian.h"

namespace braintrace::lanes_test {
namespace {

using testing::check_close;
using testing::traced;
using testing::uniform;

TEST_CASE("lanes share what they take from outside") {
  const Array x = uniform({3, 2}, -1, 1), w = uniform({2}, -1, 1, 2);
  const Graph g = traced(
      [](const Values& in) {
        return on_lanes({in[0]}, [&](const Values& one) {
          return Values{one[0] * in[1], sum(in[1])};
        });
      },
      {x, w});
  const std::vector<Array> y = eval_graph(g, std::vector{x, w});
  check_close("product", y[0], (Value(x) * Value(w)).array(), 0);
  CHECK(y[1].shape() == Shape{3});  // the same for every lane
  CHECK(y[1].at(0) == y[1].at(2));
}

TEST_CASE("sensitivities are transposed Jacobians, forward and in reverse") {
  for (const std::int64_t wide : {2, 9}) {  // fewer, more inputs than outputs
    CAPTURE(wide);
    const std::vector<Array> in = {uniform({wide, 2}, -1, 1),
                                   uniform({3, wide}, -1, 1, 2)};
    const Graph g = traced(
        [](const Values& v) {
          const Value y = tanh(dot(v[1], v[0]));
          return Values{y, sum(y * y, {.axes = {1}})};
        },
        in);
    const Graph all = traced([&](const Values& v) { return sensitivities(g, v, 0); }, in);
    const std::vector<Array> got = eval_graph(all, in);
    for (std::size_t k = 0; k < 2; ++k) {
      const Value want =
          eval_graph(jacobian(g, {.output = k, .input = 0}), in)[0];  // out, in
      const std::int64_t rank = want.rank();
      Ints order = {rank - 2, rank - 1};
      for (std::int64_t a = 0; a < rank - 2; ++a) order.push_back(a);
      check_close("sensitivity", got[k], transpose(want, order).array().contiguous(),
                  tol::f64);
    }
  }
}

}  // namespace
}  // namespace braintrace::lanes_test
