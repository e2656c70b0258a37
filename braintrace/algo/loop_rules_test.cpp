// SPDX-License-Identifier: Apache-2.0
// Which rules follow a weight into a long scan.
#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"
#include "braintrace/train/learner.h"

namespace loop_rules_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

void compile_with(const Algorithm& rule) {
  MicroModel m([](MicroModel& s, const Value& x) {
    const Value w = s.w(), h = s.h();
    s.set("h", scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; },
                    {h}, {}, {.length = 20})
                   .carry[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  compile(m, rule, ones({4}, DType::f64), {.dtype = DType::f64});
}

}  // namespace

TEST_CASE("rules per weight entry, and those without traces, follow a long scan") {
  for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(EProp{}),
                                Algorithm(ThreeFactor{}), Algorithm(BPTT{})}) {
    CAPTURE(rule.name);
    CHECK_NOTHROW(compile_with(rule));
  }
}

TEST_CASE("other rules refuse a weight inside a long scan and name those that do not") {
  for (const Algorithm& rule :
       {Algorithm(pp_prop{.decay_or_rank = 0.9}), Algorithm(Hybrid{.decay_or_rank = 0.9}),
        Algorithm(OSTLRecurrent{}), Algorithm(SnAp{.n = 2}), Algorithm(UORO{})}) {
    CAPTURE(rule.name);
    CHECK_THROWS_WITH_AS(compile_with(rule),
                         doctest::Contains("a weight inside a long scan needs a "
                                           "per-parameter rule of diagonal scope"),
                         UserError);
  }
}

}  // namespace loop_rules_test
