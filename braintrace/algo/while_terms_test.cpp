// SPDX-License-Identifier: Apache-2.0
// Loops of unknown length against twins that have the same rounds written out: every rule
// gives both the same gradients.
#include "braintrace/algo/while_terms.h"

#include <doctest/doctest.h>

#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace while_terms_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

using Rounds = std::function<Value(const Value& x, const Value& start)>;

Value looped(const Value& x, const Value& v) {
  return while_loop([&](const Values& c) { return Values{c[0] < unknown(3, x)}; },
                    [](const Values& c) {
                      return Values{c[0] + 1, c[1] + 0.3 * tanh(c[1])};
                    },
                    {scalar(0, DType::i32), v})[1];
}

Value written_out(const Value&, const Value& v) {
  Value r = v;
  for (int i = 0; i < 3; ++i) r = r + 0.3 * tanh(r);
  return r;
}

Array numbers(const Shape& s, std::uint64_t key) {
  return random_normal(rng_key(key), s, DType::f64);
}

using Build = std::function<void(MicroModel&, const Value&, const Rounds&)>;

StateDict gradients(const Build& build, const Rounds& rounds, const Algorithm& rule,
                    std::int64_t steps) {
  MicroModel m([&](MicroModel& s, const Value& x) {
    build(s, x, rounds);
    return s.h("b");
  });
  m.hidden("a", {4}).hidden("b", {4}).param("w", {4, 4}).param("r", {4, 4});
  Learner l = compile(m, rule, numbers({4}, 1), {.dtype = DType::f64});
  load_state_dict(m, {{"w", numbers({4, 4}, 11)}, {"r", numbers({4, 4}, 12)}});
  return l
      .etrace_grad(numbers({steps, 4}, 2), numbers({steps, 4}, 3),
                   [&](const Value& x, const Value& y) { return sum(y * l(x)); },
                   {.window = 1})
      .grads;
}

void check_twins(const Build& build) {
  const std::vector<std::pair<std::string, Algorithm>> rules = {
      {"D_RTRL", D_RTRL{}},
      {"pp_prop", pp_prop{.decay_or_rank = 0.9}},
      {"EProp kappa", EProp{.kappa_filter_decay = 0.6}},
      {"OSTLRecurrent", OSTLRecurrent{}},
      {"SnAp", SnAp{.n = 2}},
      {"UORO", UORO{.vjp_method = VjpMethod::single_step}}};
  for (const auto& [name, rule] : rules)
    for (std::int64_t steps : {1, 3}) {
      CAPTURE(name);
      CAPTURE(steps);
      const StateDict want = gradients(build, written_out, rule, steps);
      const StateDict got = gradients(build, looped, rule, steps);
      REQUIRE(got.size() == want.size());
      for (const auto& [leaf, g] : want) check_close(leaf, got.at(leaf), g, tol::f64);
    }
}

}  // namespace

TEST_CASE("a loop before a state that mixes into another one loses no gradient") {
  check_twins([](MicroModel& s, const Value& x, const Rounds& rounds) {
    s.set("a", 0.5 * s.h("a") + rounds(x, matmul(x, s.w())));
    s.set("b", 0.5 * s.h("b") + matmul(s.h("a"), s.w("r")));
  });
}

TEST_CASE("a loop between two states of one group loses no gradient") {
  check_twins([](MicroModel& s, const Value& x, const Rounds& rounds) {
    s.set("a", 0.5 * s.h("a") + matmul(x, s.w()));
    s.set("b", 0.5 * s.h("b") + rounds(x, s.h("a")) + matmul(x, s.w("r")));
  });
}

TEST_CASE("a loop inside a branch loses no gradient") {
  check_twins([](MicroModel& s, const Value& x, const Rounds& rounds) {
    const auto branches = [&](const Value& v) {
      return cond(
          sum(x) > -100.0, [&](const Values& in) { return Values{rounds(x, in[0])}; },
          [](const Values& in) { return in; }, {v})[0];
    };
    s.set("a", 0.5 * s.h("a") + branches(matmul(x, s.w())));
    s.set("b", 0.5 * s.h("b") + s.h("a") + matmul(x, s.w("r")));
  });
}

TEST_CASE("a weight made by a frozen one in a loop has one gradient in all windows") {
  MicroModel m([](MicroModel& s, const Value& x) {
    const Value gain = sigmoid(sum(looped(x, s.h() * s.w("frozen"))));
    const Value inside =
        while_loop([&](const Values& c) { return Values{c[0] < unknown(3, x)}; },
                   [&](const Values& c) {
                     return Values{c[0] + 1, tanh(c[1] * s.w("frozen"))};
                   },
                   {scalar(0, DType::i32), s.h()})[1];
    s.set("h", 0.5 * s.h() + matmul(x, s.w() * (gain + sum(inside))));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).param("frozen", {4});
  LearnerOptions o{.dtype = DType::f64};
  o.graph.on_refused = OnRefused::freeze;
  Learner l = compile(m, D_RTRL{}, numbers({4}, 1), o);
  const auto gradient = [&](std::int64_t window) {
    init_all_states(m, {.dtype = DType::f64});
    l.reset_state();
    return l
        .etrace_grad(numbers({4, 4}, 2), numbers({4, 4}, 3),
                     [&](const Value& x, const Value& y) { return sum(y * l(x)); },
                     {.window = window})
        .grads.at("w");
  };
  REQUIRE(verdict_of(l.graph(), "w") == Verdict::dense);
  check_close("w", gradient(2), gradient(1), tol::f64);
}

}  // namespace while_terms_test
