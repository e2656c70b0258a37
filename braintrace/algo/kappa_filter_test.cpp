// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/kappa_filter.h"

#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ir/builder.h"
#include "braintrace/run/interpreter.h"

namespace kappa_filter_test {

using namespace braintrace;

TEST_CASE("a kappa filter keeps kappa of the old and takes 1 - kappa of the new") {
  KappaFilter f(array({1, 0}), 0.75);
  CHECK(f.update(array({5, 4})) == array({2, 1}));
  CHECK(f.update(array({2, -3})) == array({2, 0}));
  CHECK(f.value() == array({2, 0}));
}

TEST_CASE("a kappa of 0 passes its input on") {
  KappaFilter f(array({1, 2}), 0);
  CHECK(f.update(array({5, 4})) == array({5, 4}));
}

TEST_CASE("reset goes back to the initial value, once per sample with a batch") {
  KappaFilter f(array({1, 2}), 0.5);
  f.update(array({3, 3}));
  f.reset();
  CHECK(f.value() == array({1, 2}));
  f.reset(3);
  CHECK(f.value() == array({3, 2}, {1, 2, 1, 2, 1, 2}));
  f.reset(1);
  CHECK(f.value() == array({1, 2}, {1, 2}));
  f.reset();
  CHECK(f.value() == array({1, 2}));
}

TEST_CASE("a kappa filter can be written into a program") {
  const auto builder = Builder::create();
  const Value v = builder->input({DType::f32, {2}}),
              x = builder->input({DType::f32, {2}});
  const Graph g = builder->finish(std::vector{kappa_filtered(v, x, 0.75)});
  CHECK(interpret(g, std::vector{array({1, 0}), array({5, 4})})[0] == array({2, 1}));
}

TEST_CASE(
    "a kappa filter refuses a kappa of 1, integers, other shapes and empty batches") {
  CHECK_THROWS_WITH_AS(KappaFilter(array({1}), 1),
                       "KappaFilter: kappa must be in [0, 1), got 1", UserError);
  CHECK_THROWS_AS(KappaFilter(array({1}, DType::i32), 0.5), UserError);
  KappaFilter f(array({1, 2}), 0.5);
  CHECK_THROWS_WITH_AS(f.update(array({1, 2, 3})),
                       "KappaFilter: x must have the shape [2], got [3]", UserError);
  CHECK_THROWS_WITH_AS(f.reset(0), "KappaFilter: batch_size must be >= 1, got 0",
                       UserError);
}

}  // namespace kappa_filter_test
