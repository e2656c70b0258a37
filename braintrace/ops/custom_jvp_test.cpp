// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/slopes.h"
#include "braintrace/transforms/vmap.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::slopes;
using testing::uniform;

// A spike with the derivative 1 / (1 + |x|)^2.
Value spike(const Value& x, CustomJvpOptions options = {.elementwise = true}) {
  return custom_jvp(
      {x}, [](const Values& v) -> Values { return {astype(v[0] > 0, v[0].dtype())}; },
      [](const Values& v) -> Values { return {v[1] / square(1 + abs(v[0]))}; },
      options)[0];
}

// Two inputs, two outputs, true derivatives: differences must agree.
Values swirl(const Values& in, bool elementwise) {
  return custom_jvp(
      in,
      [](const Values& v) -> Values {
        return {v[0] * v[1], sin(v[0])};
      },
      [](const Values& v) -> Values {
        return {v[2] * v[1] + v[0] * v[3], cos(v[0]) * v[2]};
      },
      {.elementwise = elementwise});
}

constexpr const char* kTangents = "jvp reads one tangent per float input";

TEST_CASE("custom_jvp") {
  for (bool elementwise : {true, false})
    check_op({.op = "custom_jvp",
              .build = [=](const Values& in) { return swirl(in, elementwise); },
              .inputs = {uniform({3, 2}, -1, 1), uniform({3, 2}, -1, 1, 2)},
              .expect = {{{array({0, 2}, DType::f64), array({3, 4}, DType::f64)},
                          {array({0, 8}, DType::f64),
                           array({0, 0.9092974268256817}, DType::f64)}}},
              .floats_only = kTangents});
}

TEST_CASE("custom_jvp may mix positions when it does not claim otherwise") {
  check_op({.op = "custom_jvp",
            .build =
                [](const Values& in) {
                  return custom_jvp(
                      in, [](const Values& v) -> Values { return {sum(v[0] * v[0])}; },
                      [](const Values& v) -> Values { return {sum(2 * v[0] * v[1])}; });
                },
            .inputs = {uniform({4}, -1, 1)},
            .expect = {{{array({3, 4}, DType::f64)}, {scalar(25, DType::f64)}}},
            .floats_only = kTangents});
}

TEST_CASE("a spike is a step with a surrogate slope") {
  CHECK(spike(array({-1, 0, 2})).array() == array({0, 0, 1}));
  CHECK(slopes([](const Values& v) { return 8 * spike(v[0]); }, {1}) ==
        std::vector<double>{2});
}

TEST_CASE("the surrogate slope survives batching, which keeps the op elementwise") {
  const auto builder = Builder::create();
  const Value x = builder->input({DType::f64, {3}});
  const Graph g = vmap(builder->finish(Values{spike(x)}), 2);
  const Array lanes = array({2, 3}, {-1, 0, 1, 2, -3, 4}, DType::f64);
  CHECK(eval_graph(g, std::vector<Array>{lanes})[0] ==
        array({2, 3}, {0, 0, 1, 1, 0, 1}, DType::f64));
  bool found = false;
  for (const Node& n : g.nodes())
    if (n.attrs.has("elementwise")) found = n.attrs.flag("elementwise");
  CHECK(found);
}

TEST_CASE("integer inputs have no tangent and integer outputs return none") {
  const auto f = [](const Values& v) {
    const Values out = custom_jvp(
        {astype(v[0], DType::i32), v[0]},
        [](const Values& u) -> Values {
          return {u[0] + 1, u[1]};
        },
        [](const Values& u) -> Values {
          REQUIRE(u.size() == 3);
          return {5 * u[2]};
        });
    return out[1];
  };
  CHECK(slopes(f, {2}) == std::vector<double>{5});
}

TEST_CASE("captured values become inputs that are constants of the derivative") {
  const auto f = [](const Values& v) {
    const Value scale = v[1], offset = v[2];
    return custom_jvp(
        {v[0]}, [=](const Values& u) -> Values { return {u[0] * scale}; },
        [=](const Values& u) -> Values { return {u[1] * offset * scale}; })[0];
  };
  CHECK(f({scalar(2), scalar(3), scalar(4)}).array().item() == 6);
  CHECK(slopes(f, {2, 3, 4}) == std::vector<double>{12, 0, 0});
}

TEST_CASE("a false claim of elementwise is refused by the name of the mixing op") {
  const Array x = zeros({3});
  const ValuesFn same = [](const Values& v) -> Values { return {v[0]}; };
  const ValuesFn mixing = [](const Values& v) -> Values { return {v[0] - sum(v[0])}; };
  const auto message = doctest::Contains("custom_jvp: declared elementwise, but");
  CHECK_THROWS_WITH_AS(custom_jvp({x}, mixing, same, {.elementwise = true}), message,
                       UserError);
  CHECK_THROWS_WITH_AS(custom_jvp({x}, same, mixing, {.elementwise = true}), message,
                       UserError);
  CHECK_NOTHROW(custom_jvp({x}, mixing, same));
}

TEST_CASE("custom_jvp refuses a derivative of the wrong type or count") {
  const Array x = zeros({3});
  const ValuesFn same = [](const Values& v) -> Values { return {v[0]}; };
  CHECK_THROWS_WITH_AS(
      custom_jvp({x}, same, [](const Values& v) -> Values { return {sum(v[1])}; }),
      doctest::Contains("custom_jvp: outputs of jvp must be (f32[3]), got (f32[])"),
      UserError);
  CHECK_THROWS_AS(custom_jvp({x}, same,
                             [](const Values& v) -> Values {
                               return {v[1], v[1]};
                             }),
                  UserError);
  CHECK_THROWS_WITH_AS(custom_jvp(
                           {x}, [](const Values&) { return Values{}; },
                           [](const Values&) { return Values{}; }),
                       doctest::Contains("custom_jvp: primal must have an output"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
