// SPDX-License-Identifier: Apache-2.0
// Derivatives and lanes of programs with loops and branches.
#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/jacobian.h"
#include "braintrace/transforms/jvp.h"
#include "braintrace/transforms/vjp.h"
#include "braintrace/transforms/vmap.h"

namespace braintrace::control_flow_test {
namespace {

using testing::check_close;
using testing::check_derivatives;
using testing::check_lanes;
using testing::traced;
using testing::uniform;

// Inputs: h0, xs, w, b. Two carries, one of which only counts.
Values network(const Values& in, ScanOptions options) {
  const ScanResult r = scan(
      [&](const Values& v) {
        const Value h = tanh(dot(v[0], exp(in[2])) + v[2] + in[3]);
        return Values{h, v[1] + 1, h * v[2] * astype(v[1], DType::f64)};
      },
      {in[0], scalar(0, DType::i32)}, {in[1]}, options);
  return {r.carry[0], r.ys[0], r.carry[1]};
}

const std::vector<Array> kIn = {uniform({2}, -1, 1), uniform({4, 2}, -1, 1, 2),
                                uniform({2, 2}, -2, 0, 3), uniform({2}, -1, 1, 4)};

Graph network_graph(ScanOptions options) {
  return traced([&](const Values& v) { return network(v, options); }, kIn);
}

// The same loop written out step by step.
Values unrolled(const Values& in) {
  Value h = in[0];
  Values ys;
  for (std::int64_t t = 0; t < in[1].dim(0); ++t) {
    const Value x = squeeze(slice_axis(in[1], 0, t, 1), 0);
    h = tanh(dot(h, exp(in[2])) + x + in[3]);
    ys.push_back(h * x * static_cast<double>(t));
  }
  return {h, stack(ys)};
}

TEST_CASE("derivatives of a scan agree with differences in both directions") {
  check_derivatives(network_graph({}), kIn);
  check_derivatives(network_graph({.reverse = true}), kIn);
}

TEST_CASE("gradients of a scan equal those of the loop written out") {
  auto loss = [](const Values& y) { return Values{sum(y[0] * y[0]) + sum(tanh(y[1]))}; };
  const Graph a = traced([&](const Values& v) { return loss(network(v, {})); }, kIn);
  const Graph b = traced([&](const Values& v) { return loss(unrolled(v)); }, kIn);
  const auto got = eval_graph(grad(a), kIn), want = eval_graph(grad(b), kIn);
  for (std::size_t i = 0; i < want.size(); ++i)
    check_close("gradient", got[i], want[i], tol::f64);
}

TEST_CASE("one active input of a scan is enough") {
  const Graph g = network_graph({});
  const auto all = eval_graph(
      vjp(g), std::vector<Array>{kIn[0], kIn[1], kIn[2], kIn[3], uniform({2}, -1, 1, 5),
                                 uniform({4, 2}, -1, 1, 6)});
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<bool> active(4, false);
    active[i] = true;
    const auto one =
        eval_graph(vjp(g, active),
                   std::vector<Array>{kIn[0], kIn[1], kIn[2], kIn[3],
                                      uniform({2}, -1, 1, 5), uniform({4, 2}, -1, 1, 6)});
    check_close("cotangent", one[3], all[3 + i], tol::f64);
  }
}

TEST_CASE("what no step changes is kept once, not once per step") {
  const Linearized lin = linearize(network_graph({}), {true, false, true, false});
  const auto outs = lin.primal.output_types();
  for (const Type& t : outs) CHECK(t.shape != Shape{4, 2, 2});
}

TEST_CASE("second derivatives of a scan agree with differences") {
  const Graph g = traced(
      [](const Values& v) {
        const Values y = network(v, {});
        return Values{sum(y[0]) + sum(y[1] * y[1])};
      },
      kIn);
  check_derivatives(grad(g), kIn);
}

TEST_CASE("lanes of a scan agree with a loop for every choice of batched inputs") {
  const std::vector<Array> many = {uniform({3, 2}, -1, 1), uniform({3, 4, 2}, -1, 1, 2),
                                   uniform({3, 2, 2}, -2, 0, 3),
                                   uniform({3, 2}, -1, 1, 4)};
  const Graph g = network_graph({});
  for (unsigned choice = 1; choice < 16; ++choice) {
    std::vector<Array> in;
    std::vector<bool> batched;
    for (unsigned i = 0; i < 4; ++i) {
      batched.push_back((choice >> i & 1) != 0);
      in.push_back(batched[i] ? many[i] : kIn[i]);
    }
    CAPTURE(choice);
    check_lanes(g, in, batched);
  }
}

TEST_CASE("lanes of a gradient of a scan agree with a loop") {
  const Graph g = grad(traced(
      [](const Values& v) { return Values{sum(network(v, {.reverse = true})[1])}; },
      kIn));
  check_lanes(g, {kIn[0], uniform({3, 4, 2}, -1, 1, 2), kIn[2], kIn[3]},
              {false, true, false, false});
}

TEST_CASE("Jacobians of a scan agree, forward and reverse") {
  const Graph g = network_graph({});
  for (std::size_t input = 0; input < 4; ++input) {
    const auto f = eval_graph(
        jacobian(g, {.output = 1, .input = input, .mode = JacobianMode::forward}), kIn);
    const auto r = eval_graph(
        jacobian(g, {.output = 1, .input = input, .mode = JacobianMode::reverse}), kIn);
    check_close("J", f[0], r[0], tol::f64);
  }
}

// A scan inside a branch inside a scan.
Values nested(const Values& in) {
  return scan(
             [&](const Values& v) {
               return cond(
                   sum(v[0]) > 0.2,
                   [&](const Values& o) {
                     return scan(
                                [&](const Values& c) {
                                  return Values{sin(c[0] * in[1])};
                                },
                                {o[0]}, {}, {.length = 2})
                         .carry;
                   },
                   [&](const Values& o) { return Values{o[0] * o[0] + 0.5}; }, {v[0]});
             },
             {in[0]}, {}, {.length = 4})
      .carry;
}

TEST_CASE("a scan in a cond in a scan has derivatives of first and second order") {
  const std::vector<Array> in = {uniform({2}, -1, 1), uniform({2}, 0.5, 1.5, 2)};
  check_derivatives(traced(nested, in), in);
  const Graph g = traced([](const Values& v) { return Values{sum(nested(v)[0])}; }, in);
  check_derivatives(grad(g), in);
}

TEST_CASE("lanes of a scan in a cond in a scan choose one by one") {
  const std::vector<Array> in = {uniform({2}, -1, 1), uniform({2}, 0.5, 1.5, 2)};
  check_lanes(traced(nested, in), {uniform({5, 2}, -1, 1, 3), in[1]}, {true, false});
}

TEST_CASE("a while inside a scan has forward derivatives") {
  const std::vector<Array> in = {scalar(0.3, DType::f64), scalar(1.4, DType::f64)};
  const Graph g = traced(
      [](const Values& v) {
        return scan(
                   [&](const Values& c) {
                     const Value grown = while_loop(
                         [](const Values& w) { return Values{w[0] < 1}; },
                         [&](const Values& w) { return Values{w[0] * v[1]}; }, {c[0]})[0];
                     return Values{grown * 0.5};
                   },
                   {v[0]}, {}, {.length = 3})
            .carry;
      },
      in);
  check_derivatives(g, in, {.reverse = false});
  check_derivatives(jvp(g), {in[0], in[1], in[1], in[0]}, {.reverse = false});
  CHECK_THROWS_WITH_AS(vjp(g), doctest::Contains("while: reverse mode"), UserError);
}

TEST_CASE("a carry that starts without a tangent gets one from the consts") {
  const std::vector<Array> in = {uniform({2}, 0.5, 1)};
  const Graph g = traced(
      [](const Values& v) {
        return scan(
                   [&](const Values& c) {
                     return Values{c[1], c[0] * v[0] + v[0]};
                   },
                   {zeros({2}, DType::f64), ones({2}, DType::f64)}, {}, {.length = 3})
            .carry;
      },
      in);
  check_derivatives(g, in);
}

TEST_CASE("a cotangent that arrives at one carry reaches the others through the steps") {
  const std::vector<Array> in = {uniform({2}, -1, 1), uniform({2}, -1, 1, 2)};
  const Graph g = traced(
      [](const Values& v) {
        const ScanResult r = scan(
            [](const Values& c) {
              return Values{c[1] * 2, tanh(c[0])};
            },
            {v[0], v[1]}, {}, {.length = 3});
        return Values{r.carry[0]};
      },
      in);
  check_derivatives(g, in);
}

}  // namespace
}  // namespace braintrace::control_flow_test
