// SPDX-License-Identifier: Apache-2.0
// What the compiler says of parameters whose past it does not trace.
#include "braintrace/etrace/local_reason.h"

#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"

namespace local_reason_test {

using namespace braintrace;
using namespace braintrace::testing;
using Kind = DiagnosticKind;

namespace {

using Next = std::function<Value(MicroModel&, const Value&)>;  // (states, x) -> new h

std::unique_ptr<MicroModel> model(const Next& next) {
  auto m = std::make_unique<MicroModel>([next](MicroModel& s, const Value& x) {
    s.set("h", next(s, x));
    return s.h();
  });
  m->hidden("h", {4}).param("w", {4, 4}).param("v", {4, 4}).param("b", {4});
  m->dynamic("t", {4});
  return m;
}

ParameterVerdict verdict(const ETraceGraph& g, const char* path) {
  for (const ParameterVerdict& v : g.verdicts)
    if (v.path == Path{path}) return v;
  throw std::runtime_error("no verdict");
}

std::string reason(const Next& next, const char* path, const CompileOptions& o = {}) {
  const auto m = model(next);
  const ETraceGraph g = m->compile(o);
  const ParameterVerdict v = verdict(g, path);
  CHECK(v.verdict == Verdict::local);
  CHECK(g.explain({.weight_path = Path{path}, .kind = Kind::parameter_local}).size() ==
        1);
  return v.reason;
}

bool holds(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a plain op between parameter and state is named") {
  CHECK(holds(
      reason([](MicroModel& s, const Value& x) { return 0.9 * s.h() + x + s.w("b"); },
             "b"),
      "it acts on hidden states through add at local_reason_test.cpp:"));
}

TEST_CASE("a parameter that is the data of a trainable op is told so") {
  const Next product = [](MicroModel& s, const Value& x) {
    const Value both = matmul(s.w("w"), s.w("v"));
    return 0.9 * s.h() + matmul(x, both);
  };
  CHECK(holds(reason(product, "w"), "etp_mm at local_reason_test.cpp:"));
  CHECK(holds(reason(product, "w"), "takes it as data, not as a weight"));
  const auto m = model(product);
  const ETraceGraph g = m->compile();
  CHECK(verdict(g, "v").verdict == Verdict::dense);
  const auto made = g.explain({.kind = Kind::trainable_invar_not_paramstate});
  REQUIRE(made.size() == 1);
  CHECK(holds(made[0].message, "another trainable op, not from a ParamState"));
}

TEST_CASE("a weight whose op is followed by mixing is told so") {
  CompileOptions o;
  o.weight_paths = WeightPaths::local;
  const Next rolled = [](MicroModel& s, const Value& x) {
    return 0.9 * s.h() + roll(matmul(x, s.w()), 1);
  };
  CHECK(holds(reason(rolled, "w", o), "only through ops that mix positions"));
  const auto m = model(rolled);
  const auto records =
      m->compile(o).explain({.kind = Kind::relation_excluded_non_temporal});
  REQUIRE(records.size() == 1);
  CHECK(holds(records[0].message, "only through ops that mix positions"));
}

TEST_CASE("a detached weight, or op, is local and keeps no trace") {
  for (const Next& next : {Next([](MicroModel&s, const Value&x) {
                             return 0.9 * s.h() + matmul(x, stop_gradient(s.w()));
                           }),
                           Next([](MicroModel&s, const Value&x) {
                             return 0.9 * s.h() + stop_gradient(matmul(x, s.w()));
                           })}) {
    CHECK(reason(next, "w") == "nothing that is differentiated depends on it");
    const auto m = model(next);
    CHECK(m->compile().hidden_param_op_relations.empty());
    CHECK(m->compile(compat()).hidden_param_op_relations.size() == 1);
  }
}

TEST_CASE(
    "an op that a state sees detached and the output does not is no dense relation") {
  const auto m = std::make_unique<MicroModel>([](MicroModel& s, const Value& x) {
    const Value y = matmul(x, s.w());
    s.set("h", 0.9 * s.h() + stop_gradient(y));
    return s.h() + y;
  });
  m->hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m->compile();
  CHECK(verdict(g, "w").verdict == Verdict::local);
  CHECK(verdict(g, "w").reason == "it reaches no hidden state");
}

TEST_CASE("a parameter whose result nobody reads is local") {
  CHECK(reason(
            [](MicroModel& s, const Value& x) {
              (void)tanh(s.w("b"));
              return 0.9 * s.h() + x;
            },
            "b") == "nothing that is differentiated depends on it");
}

TEST_CASE("an output that is a parameter depends on it") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + x);
    return s.w();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CHECK(verdict(m.compile(), "w").reason == "it reaches no hidden state");
}

TEST_CASE("a plain parameter in a long loop is told that no trainable op takes it") {
  const auto m = model([](MicroModel& s, const Value& x) {
    const Value b = s.w("b"), h = s.h();
    return scan([&](const Values& c) { return Values{0.9 * c[0] + x * b}; }, {h}, {},
                {.length = 20})
        .carry[0];
  });
  const ETraceGraph g = m->compile();
  CHECK(holds(verdict(g, "b").reason, "no trainable op of the scan at "));
  CHECK(g.explain({.weight_path = Path{"b"}, .kind = Kind::scan_descent_no_relations})
            .size() == 1);
}

TEST_CASE(
    "a long loop whose result is changed before it is stored says why it is closed") {
  const auto m = model([](MicroModel& s, const Value& x) {
    const Value w = s.w(), h = s.h();
    return tanh(scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; },
                     {h}, {}, {.length = 20})
                    .carry[0]);
  });
  const auto skipped = m->compile().explain({.kind = Kind::scan_descent_skipped});
  REQUIRE(skipped.size() == 1);
  CHECK(holds(skipped[0].message, "no hidden state leaves it as it is carried"));
}

TEST_CASE("a short-term state that carries credit is on record, by name") {
  const auto m = model([](MicroModel& s, const Value& x) {
    const Value h = s.h(), t = s.other("t").value();
    s.other("t").set(0.5 * t + matmul(x, s.w()) + h);
    return 0.9 * h + s.other("t").value();
  });
  const ETraceGraph g = m->compile();
  const auto cuts = g.explain({.hidden_path = Path{"h"}, .kind = Kind::history_cut});
  REQUIRE(cuts.size() == 1);
  CHECK(cuts[0].message ==
        "('t',) is carried to the next step but is no hidden state: the past of [('h',), "
        "('w',)] is not credited through it");
  CHECK(cuts[0].weight_path == Path{"w"});
  CHECK(m->compile(compat()).explain({.kind = Kind::history_cut}).empty());
}

TEST_CASE("a short-term state that carries no credit is not on record") {
  for (const Next& next :
       {Next([](MicroModel&s, const Value&x) {  // a clock
          s.other("t").set(s.other("t").value() + 1.0);
          return 0.9 * s.h() + matmul(x, s.w()) * s.other("t").value();
        }),
        Next([](MicroModel&s, const Value&x) {  // statistics nobody reads
          const Value y = matmul(x, s.w());
          s.other("t").set(0.9 * s.other("t").value() + y);
          return 0.9 * s.h() + y;
        }),
        Next([](MicroModel&s, const Value&x) {  // detached
          const Value y = matmul(x, s.w());
          s.other("t").set(stop_gradient(y));
          return 0.9 * s.h() + y + s.other("t").value();
        })})
    CHECK(model(next)->compile().explain({.kind = Kind::history_cut}).empty());
}

TEST_CASE("a detour over two short-term states is found") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value a = s.other("a").value(), b = s.other("b").value();
    s.other("a").set(matmul(x, s.w()));
    s.other("b").set(tanh(a));
    s.set("h", 0.9 * s.h() + b);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).dynamic("a", {4}).dynamic("b", {4});
  const auto cuts = m.compile().explain({.kind = Kind::history_cut});
  REQUIRE(cuts.size() == 1);  // b is made of a alone, whose own past is dropped
  CHECK(cuts[0].message.find("('a',) is carried") == 0);
}

TEST_CASE("a unit that is summed over its only position is not cut") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", 0.5 * h + sum(h) + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {1}).param("w", {4, 1});
  const ETraceGraph g = m.compile();
  CHECK(g.explain({.kind = Kind::history_cut}).empty());
  CHECK(jacobian_of(g).at(0) == doctest::Approx(1.5));
}

}  // namespace local_reason_test
