// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/synthetic_gradient.h"

#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ir/builder.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace synthetic_gradient_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

using GroupShapes = std::map<std::int64_t, Shape>;

// Group 1: two positions, two states, so W is (4, 4); b = 10, 20, 30, 40.
SyntheticGradient swapping() {
  SyntheticGradient m({{1, {2, 2}}});
  // Sends the entry of (position, state) k to the entry 3 - k.
  m.set_parameters(1, {array({4, 4}, {0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0}),
                       array({10, 20, 30, 40})});
  return m;
}

}  // namespace

TEST_CASE("a synthetic gradient mixes positions and states of one sample") {
  CHECK(swapping().estimate(1, array({2, 2}, {1, 2, 3, 4})).array() ==
        array({2, 2}, {14, 23, 32, 41}));
}

TEST_CASE("a synthetic gradient treats samples alike and keeps the type") {
  SyntheticGradient m({{0, {3, 1, 2}}});
  m.set_parameters(0, {array({2, 2}, {1, 2, 3, 4}), array({0, 1})});
  const Array h = array({3, 1, 2}, {1, 0, 0, 1, 1, 1}, DType::f64);
  CHECK(m.estimate(0, h).array() == array({3, 1, 2}, {1, 3, 3, 5, 4, 7}, DType::f64));
}

TEST_CASE("a synthetic gradient predicts nothing until it is told otherwise") {
  const SyntheticGradient silent({{0, {2, 1}}, {1, {3, 2}}});
  CHECK(silent.estimate(1, ones({3, 2})).array() == zeros({3, 2}));
  const SyntheticGradient loud({{0, {2, 1}}, {1, {3, 2}}}, {.scale = 1, .seed = 3});
  const SyntheticGradient again({{0, {2, 1}}, {1, {3, 2}}}, {.scale = 1, .seed = 3});
  CHECK(!(loud.estimate(1, ones({3, 2})).array() == zeros({3, 2})));
  CHECK(loud.parameters(1).w == again.parameters(1).w);
  CHECK(loud.parameters(1).w.shape() == Shape{6, 6});
  CHECK(loud.parameters(1).b == zeros({6}));
}

TEST_CASE("a synthetic gradient can be written into a program") {
  const auto builder = Builder::create();
  const Value h = builder->input({DType::f32, {2, 2}});
  const Graph g = builder->finish(std::vector{swapping().estimate(1, h)});
  CHECK(interpret(g, std::vector{array({2, 2}, {1, 2, 3, 4})})[0] ==
        array({2, 2}, {14, 23, 32, 41}));
}

TEST_CASE("a group of one position without axes has its states alone") {
  SyntheticGradient m(GroupShapes{{0, {2}}});
  m.set_parameters(0, {array({2, 2}, {0, 1, 1, 0}), array({0, 0})});
  CHECK(m.estimate(0, array({1, 2})).array() == array({2, 1}));
}

TEST_CASE("a synthetic gradient refuses unknown groups and other shapes") {
  SyntheticGradient m = swapping();
  CHECK_THROWS_WITH_AS(m.estimate(0, zeros({2, 2})),
                       "SyntheticGradient: there is no group 0", UserError);
  CHECK_THROWS_WITH_AS(m.estimate(1, zeros({4})),
                       "SyntheticGradient: group 1 has the shape [2,2], got [4]",
                       UserError);
  CHECK_THROWS_AS(m.set_parameters(1, {zeros({2, 2}), zeros({2})}), UserError);
  CHECK_THROWS_AS(SyntheticGradient(GroupShapes{{0, {}}}), UserError);
}

TEST_CASE("a predicted future reaches every lane as it reaches a batch") {
  StateDict grads[2];
  for (const bool lanes : {false, true}) {
    MicroModel m([](MicroModel& s, const Value& x) {
      s.set("h", 0.9 * s.h() + matmul(x, s.w()) + tanh(s.w("plain")));
      return s.h();
    });
    m.hidden("h", {4}).param("w", {4, 4}).param("plain", {4});
    const Array xs = random_normal(rng_key(2), {3, 2, 4}, DType::f64);
    Learner l = compile(m, DNI{}, row(xs, 0),
                        {.batch_size = 2, .seed = 1, .dtype = DType::f64, .vmap = lanes});
    const Shape group = lanes ? Shape{4, 1} : Shape{2, 4, 1};
    l.set_synthesizer(SyntheticGradient({{0, group}}, {.scale = 1, .seed = 3}));
    grads[lanes] = l.etrace_grad(xs, xs, [&](const Value& x, const Value& y) {
                      return sum(l(x) * y);
                    }).grads;
  }
  for (const auto& [leaf, g] : grads[0])
    check_close(leaf, grads[1].at(leaf), g, tol::f64);
}

}  // namespace synthetic_gradient_test
