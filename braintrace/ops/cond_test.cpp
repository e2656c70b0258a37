// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/transforms/vjp.h"
#include "braintrace/transforms/vmap.h"

namespace braintrace {
namespace {

using testing::check_derivatives;
using testing::check_lanes;
using testing::check_op;
using testing::traced;
using testing::uniform;

Array truth(bool v) { return scalar(v ? 1 : 0, DType::boolean); }

// The second output moves in one branch only; in[2] is captured.
Values choose(const Values& in) {
  return cond(
      in[0],
      [&](const Values& v) {
        return Values{tanh(v[0]) * in[2], exp(v[0])};
      },
      [&](const Values& v) {
        return Values{v[0] * v[0], ones_like(v[0])};
      },
      {in[1]});
}

TEST_CASE("cond") {
  for (const bool which : {true, false}) {
    check_op({.op = "cond",
              .build = choose,
              .inputs = {truth(which), uniform({2}, -1, 1), uniform({2}, -1, 1, 2)},
              .check_positions = false});
  }
}

TEST_CASE("the branch not taken leaves no NaN in the gradient") {
  const std::vector<Array> in = {array({-1, 4}, DType::f64)};
  for (const bool which : {true, false}) {
    const Graph g = traced(
        [&](const Values& v) {
          return cond(
              truth(which), [](const Values& x) { return Values{log(x[0])}; },
              [](const Values& x) { return Values{x[0] * 3}; }, {v[0]});
        },
        in);
    if (!which) check_derivatives(g, in);
    if (which) check_derivatives(g, {array({1, 4}, DType::f64)});
  }
}

TEST_CASE("lanes of a cond choose one by one") {
  const Graph g =
      traced(choose, {truth(true), uniform({2}, -1, 1), uniform({2}, -1, 1, 2)});
  const Array which = array({1, 0, 1}, DType::boolean);
  const Array many = uniform({3, 2}, -1, 1), one = uniform({2}, -1, 1);
  check_lanes(g, {which, one, one}, {true, false, false});
  check_lanes(g, {which, many, one}, {true, true, false});
  check_lanes(g, {which, many, many}, {true, true, true});
  check_lanes(g, {truth(true), many, one}, {false, true, false});
  check_lanes(g, {truth(false), one, many}, {false, false, true});
}

TEST_CASE("lanes that do not take a branch leave no NaN in the gradient") {
  const Graph g = traced(
      [](const Values& v) {
        return cond(
            v[0] > 0, [](const Values& x) { return Values{sqrt(x[0])}; },
            [](const Values& x) { return Values{x[0] * 3}; }, {v[0]});
      },
      {scalar(1, DType::f64)});
  const Array x = array({0, 4}, DType::f64), ct = ones({2}, DType::f64);
  const Array slope = eval_graph(vjp(vmap(g, 2)), std::vector<Array>{x, ct})[1];
  CHECK(slope == array({3, 0.25}, DType::f64));
}

TEST_CASE("cond refuses branches that differ and predicates that are not boolean") {
  const auto same = [](const Values& v) { return v; };
  const auto other = [](const Values&) { return Values{scalar(1, DType::i32)}; };
  CHECK_THROWS_WITH_AS(
      cond(truth(true), same, other, {scalar(1)}),
      doctest::Contains("false branch output 0 must be f32[], got i32[]"), UserError);
  CHECK_THROWS_WITH_AS(cond(scalar(1), same, same, {scalar(1)}),
                       doctest::Contains("predicate 0 must be bool"), UserError);
}

TEST_CASE("a hostile cond text is refused") {
  const std::string branch = "{in %0:f32[] out %0}";
  const std::string branches =
      "cond {false_branch=" + branch + ", true_branch=" + branch + "} ";
  CHECK_THROWS_AS(parse("%0:f32[] = " + branches + "\nout %0"), UserError);
  CHECK_THROWS_AS(parse("in %0:bool[]\n%1:f32[] = " + branches + "%0\nout %1"),
                  UserError);
  CHECK_THROWS_AS(parse("in %0:f32[]\n%1:f32[] = " + branches + "%0 %0\nout %1"),
                  UserError);
}

}  // namespace
}  // namespace braintrace
