// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/count_loops.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/testing/pass_check.h"

namespace count_loops_test {

using namespace braintrace;

namespace {

// h is halved and moved while the counter, from `first` in steps of `step`, is below
// `limit`.
struct Loop {
  double first = 0, step = 1;
  bool limit_is_input = false, step_is_carried = false;

  Graph graph(double limit = 3) const {
    const auto builder = Builder::create();
    const Value x = builder->input({DType::f64, {2}});
    const Value given = builder->input({DType::f64, {}});
    const Value most =
        limit_is_input ? given : builder->constant(scalar(limit, DType::f64));
    const Values start = {builder->constant(scalar(first, DType::f64)), x,
                          builder->constant(scalar(step, DType::f64))};
    const auto below = [&](const Values& c) { return Values{c[0] < most}; };
    const auto turn = [&](const Values& c) {
      const Value by = step_is_carried ? c[2] : Value(scalar(step, DType::f64));
      return Values{c[0] + by, 0.5 * c[1] + sin(x), c[2] + 1.0};
    };
    const Values out = while_loop(below, turn, start);
    return builder->finish(std::vector{out[0], out[1]});
  }
};

bool has_loop(const Graph& g) { return has_while(count_loops(g)); }

}  // namespace

TEST_CASE("a loop that counts to a constant becomes a scan of the same values") {
  for (const double first : {0.0, 2.0, 3.0, 7.0}) {
    CAPTURE(first);
    const Graph g = Loop{.first = first}.graph();
    CHECK(has_while(g));
    const Graph h = count_loops(g);
    CHECK_FALSE(has_while(h));
    testing::check_same_values(g, h);
  }
}

TEST_CASE("a step that changes from turn to turn is counted, too") {
  const Graph g = Loop{.step_is_carried = true}.graph(10);
  CHECK_FALSE(has_loop(g));
  testing::check_same_values(g, count_loops(g));
}

TEST_CASE("a loop whose length an input decides stays") {
  CHECK(has_loop(Loop{.limit_is_input = true}.graph()));
}

TEST_CASE("a loop of very many turns, or without end, stays") {
  CHECK(has_loop(Loop{}.graph(1e6)));
  CHECK(has_loop(Loop{.step = 0}.graph()));
}

TEST_CASE("loops inside a counted loop are counted") {
  const auto builder = Builder::create();
  const Value x = builder->input({DType::f64, {}});
  const auto nest = [](const ValuesFn& inner, const Value& h) {
    return while_loop([](const Values& c) { return Values{c[0] < 3.0}; }, inner,
                      {Value(scalar(0, DType::f64)), h})[1];
  };
  const ValuesFn deep = [](const Values& c) { return Values{c[0] + 1.0, sin(c[1])}; };
  const ValuesFn outer = [&](const Values& c) {
    return Values{c[0] + 1.0, nest(deep, c[1])};
  };
  const Graph g = builder->finish(std::vector{nest(outer, x)});
  CHECK_FALSE(has_loop(g));
  testing::check_same_values(g, count_loops(g));
}

}  // namespace count_loops_test
