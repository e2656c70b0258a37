// SPDX-License-Identifier: Apache-2.0
// Weights that are masked or squashed before they enter a long scan.
#include "braintrace/etrace/scan_prologue.h"

#include <doctest/doctest.h>

#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace scan_prologue_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr std::int64_t kRounds = 20;

// h after twenty rounds of leak and drive by the given weight.
MicroModel::Step rounds(const std::function<Value(MicroModel&, const Value&)>& weight) {
  return [weight](MicroModel& s, const Value& x) {
    const Value w = weight(s, x);
    const Value h = s.h();
    s.set("h", scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; },
                    {h}, {}, {.length = kRounds})
                   .carry[0]);
    return s.h();
  };
}

Value masked(MicroModel& s, const Value&) {
  return tanh(s.w()) * Value(full({4, 4}, 0.5, DType::f64));
}

Value scaled_by_input(MicroModel& s, const Value& x) { return s.w() * (1.0 + sum(x)); }

StateDict gradients(const Algorithm& rule, const LearnerOptions& options) {
  MicroModel m(rounds(masked));
  m.hidden("h", {4}).param("w", {4, 4});
  Learner l = compile(m, rule, ones({4}, DType::f64), options);
  const Array xs = random_normal(rng_key(2), {3, 4}, DType::f64);
  return l
      .etrace_grad(xs, xs, [&](const Value& x, const Value& y) { return sum(l(x) * y); },
                   {.window = 1})
      .grads;
}

}  // namespace

TEST_CASE("a masked weight in a long scan keeps its trace") {
  MicroModel m(rounds(masked));
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(verdict_of(g, "w") == Verdict::direct);
  REQUIRE(g.hidden_param_op_relations.size() == 1);
  CHECK(g.hidden_param_op_relations[0].control_flow_context != nullptr);
  CHECK(!g.hidden_param_op_relations[0].trainables[0].prologue.dynamic);
}

TEST_CASE("the gradient of a masked weight in a long scan is that of the unrolled one") {
  LearnerOptions opened{.dtype = DType::f64}, unrolled = opened;
  unrolled.graph.control_flow.scan_unroll_limit = 2 * kRounds;
  opened.graph.control_flow.scan_unroll_limit = 4;
  const StateDict want = gradients(D_RTRL{}, unrolled), got = gradients(D_RTRL{}, opened);
  CHECK(want.at("w").at(0) != 0);
  check_close("w", got.at("w"), want.at("w"), tol::f64);
}

TEST_CASE(
    "a weight that an input scales stays outside the scan, and that is the reason") {
  MicroModel m(rounds(scaled_by_input));
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(verdict_of(g, "w") == Verdict::local);
  const auto about =
      g.explain({.weight_path = Path{"w"},
                 .kind = DiagnosticKind::relation_excluded_weight_to_weight});
  REQUIRE(about.size() == 1);
  CHECK(about[0].message.find("its weight is made of data as well, outside the loop") !=
        std::string::npos);
  CHECK(g.verdicts[0].reason == about[0].message);
  // It does come from a parameter.
  for (const char* wrong :
       {"trainable_invar_not_paramstate", "relation_excluded_no_paramstate"})
    CHECK(g.explain({.kind = *diagnostic_kind_from_string(wrong)}).empty());
}

TEST_CASE("a weight that an input scales on its way into a closed loop names the loop") {
  MicroModel m(rounds(scaled_by_input));
  m.hidden("h", {4}).param("w", {4, 4});
  CompileOptions closed;
  closed.control_flow.scan_descent = "off";
  const ETraceGraph g = m.compile(closed);
  CHECK(verdict_of(g, "w") == Verdict::local);
  CHECK(g.verdicts[0].reason.find("what is made of it enters a scan at ") == 0);
}

TEST_CASE("a loop with a constant weight says that no parameter is behind it") {
  MicroModel m(rounds([](MicroModel&, const Value&) {
    return ones({4, 4}, DType::f64);
  }));
  m.hidden("h", {4});
  const ETraceGraph g = m.compile();
  CHECK(g.explain({.kind = DiagnosticKind::relation_excluded_no_paramstate}).size() == 1);
}

}  // namespace scan_prologue_test
