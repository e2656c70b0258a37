// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace {
namespace {

using testing::check_derivatives;
using testing::check_lanes;
using testing::traced;
using testing::uniform;

// Multiplies by a captured factor until the value passes a captured limit.
Values grow(const Values& in) {
  return while_loop([&](const Values& v) { return Values{v[0] < in[2]}; },
                    [&](const Values& v) {
                      return Values{v[0] * in[1], v[1] + 1};
                    },
                    {in[0], scalar(0, DType::i32)});
}

Array f64(double v) { return scalar(v, DType::f64); }

TEST_CASE("while") {
  const std::vector<Array> in = {f64(1.5), f64(2), f64(10)};
  const Graph g = traced(grow, in);
  verify(g);
  CHECK(parse(print(g)) == g);
  const auto out = eval_graph(g, in);
  CHECK(out[0] == f64(12));
  CHECK(out[1] == scalar(3, DType::i32));
  CHECK(grow({in[0], in[1], in[2]})[0].array() == f64(12));
  check_derivatives(g, in, {.reverse = false});
  testing::check_op({.op = "while",
                     .build = grow,
                     .inputs = in,
                     .reversible = false,
                     .fixed_values = "other numbers may never reach the limit"});
}

TEST_CASE("a while that counts its turns ends for any numbers") {
  const auto power = [](const Values& in) -> Values {
    return {while_loop([](const Values& v) { return Values{v[0] < 3}; },
                       [&](const Values& v) {
                         return Values{v[0] + 1, v[1] * in[0]};
                       },
                       {scalar(0, DType::i32), in[1]})[1]};
  };
  testing::check_op({.op = "while",
                     .build = power,
                     .inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, -1, 1, 2)},
                     .expect = {{{f64(2), f64(5)}, {f64(40)}}},
                     .reversible = false});
}

TEST_CASE("a while whose condition is false at once keeps its carry") {
  CHECK(grow({f64(11), f64(2), f64(10)})[1].array() == scalar(0, DType::i32));
}

TEST_CASE("lanes of a while stop one by one") {
  const Graph g = traced(grow, {f64(1), f64(2), f64(10)});
  const Array starts = array({1, 20, 3}, DType::f64);
  const Array factors = array({2, 3, 1.5}, DType::f64);
  const Array limits = array({10, 5, 100}, DType::f64);
  check_lanes(g, {starts, f64(2), f64(10)}, {true, false, false});
  check_lanes(g, {f64(1), factors, f64(10)}, {false, true, false});
  check_lanes(g, {f64(1), f64(2), limits}, {false, false, true});
  check_lanes(g, {starts, factors, limits}, {true, true, true});
}

TEST_CASE("lanes of a while with one condition stay one loop") {
  const Graph g = traced(
      [](const Values& in) {
        return while_loop([](const Values& v) { return Values{v[0] < 3}; },
                          [&](const Values& v) {
                            return Values{v[0] + 1, v[1] * in[0]};
                          },
                          {scalar(0, DType::i32), in[1]});
      },
      {f64(2), f64(1)});
  check_lanes(g, {array({1, 2, 3}, DType::f64), f64(1)}, {true, false});
}

TEST_CASE("reverse mode through a while is refused by name") {
  const Graph g = traced([](const Values& v) { return Values{grow(v)[0]}; },
                         {f64(1), f64(2), f64(10)});
  try {
    grad(g);
    FAIL("no error");
  } catch (const UserError& e) {
    CHECK(e.kind() == ErrorKind::not_supported);
    CHECK(std::string(e.what()).find("while: reverse mode") != std::string::npos);
  }
}

TEST_CASE("reverse mode beside a while that does not move is fine") {
  const std::vector<Array> in = {f64(1.5), f64(0.3)};
  const Graph g = traced(
      [](const Values& v) {
        const Value n = while_loop([](const Values& c) { return Values{c[0] < 10}; },
                                   [](const Values& c) { return Values{c[0] * 2}; },
                                   {stop_gradient(v[0])})[0];
        return Values{n * tanh(v[1])};
      },
      in);
  CHECK(eval_graph(grad(g), in)[0] == f64(0));
}

TEST_CASE("while refuses wrong conditions and bodies") {
  const auto yes = [](const Values&) { return Values{scalar(1, DType::boolean)}; };
  const auto same = [](const Values& v) { return v; };
  CHECK_THROWS_WITH_AS(while_loop(same, same, {f64(1)}),
                       doctest::Contains("condition output 0 must be bool"), UserError);
  CHECK_THROWS_WITH_AS(
      while_loop(yes, [](const Values&) { return Values{scalar(1)}; }, {f64(1)}),
      doctest::Contains("body output 0 must be f64[], got f32[]"), UserError);
}

}  // namespace
}  // namespace braintrace
