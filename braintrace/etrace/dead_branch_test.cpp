// SPDX-License-Identifier: Apache-2.0
// A branch that is not taken adds nothing to gradients, not even 0 * inf.
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/etrace/canonicalize.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/train/learner.h"

namespace dead_branch_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// x is 1 everywhere, so the first branch is never taken.
Value alternatives(const Value& x, const Value& v,
                   const std::function<Value(const Value&)>& dead) {
  return cond(
      sum(x) > 100.0, [&](const Values& in) { return Values{dead(in[0])}; },
      [](const Values& in) { return Values{2.0 * in[0]}; }, {v})[0];
}

void check_finite(const MicroModel::Step& step) {
  for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(BPTT{})}) {
    CAPTURE(rule.name);
    MicroModel m(step);
    m.hidden("h", {4}).param("w", {4, 4}).param("b", {4});
    Learner l = compile(m, rule, ones({4}, DType::f64), {.dtype = DType::f64});
    load_state_dict(m, {{"w", zeros({4, 4}, DType::f64)}, {"b", zeros({4}, DType::f64)}});
    const StateDict grads =
        l.etrace_grad(ones({3, 4}, DType::f64), ones({3, 4}, DType::f64),
                      [&](const Value& x, const Value& y) { return sum(l(x) * y); })
            .grads;
    for (const auto& [leaf, g] : grads)
      for (double v : g.to_doubles()) {
        CAPTURE(leaf);
        CHECK(std::isfinite(v));
        CHECK(v != 0);
      }
  }
}

}  // namespace

TEST_CASE("a dead branch that reads the output of a trainable op gives no NaN") {
  check_finite([](MicroModel& s, const Value& x) {
    const Value y = matmul(x, s.w()) + s.w("b");
    s.set("h", 0.9 * s.h() + alternatives(x, y, [](const Value& v) { return log(v); }));
    return s.h();
  });
}

TEST_CASE("a dead branch that reads a plain weight gives no NaN") {
  check_finite([](MicroModel& s, const Value& x) {
    const Value b = alternatives(x, s.w("b"), [](const Value& v) { return log(v); });
    s.set("h", 0.9 * s.h() + matmul(x, s.w()) + b);
    return s.h();
  });
}

TEST_CASE("weights of a branch with a trainable op stay traceable, masked or not") {
  MicroModel m([](MicroModel& s, const Value& x) {
    const Value masked = s.w() * Value(full({4, 4}, 0.5, DType::f64));
    const Value y = cond(
        sum(x) > 100.0, [](const Values& in) { return Values{matmul(in[0], in[1])}; },
        [](const Values& in) { return Values{2.0 * in[0]}; }, {x, masked})[0];
    s.set("h", 0.9 * s.h() + y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CHECK(verdict_of(m.compile(), "w") == Verdict::direct);
}

}  // namespace dead_branch_test
