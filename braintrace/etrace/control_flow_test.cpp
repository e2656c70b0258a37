// SPDX-License-Identifier: Apache-2.0
// Weights in loops and branches that stay closed: the current step's gradient, on record.
#include "braintrace/etrace/control_flow.h"

#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/vjp.h"

namespace control_flow_test {

using namespace braintrace;
using namespace braintrace::testing;
using Kind = DiagnosticKind;

namespace {

constexpr std::int64_t kLong = 20;

// h' = loop of kLong sub-steps c' = 0.9 c + body(c); "v" is traced beside it.
std::unique_ptr<MicroModel> looped(
    std::function<Value(MicroModel&, const Value&, const Value&)> body,
    ScanOptions options = {.length = kLong}) {
  auto m = std::make_unique<MicroModel>([=](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    const Value in = matmul(x, s.w("v"));
    s.set("k", 0.5 * s.h("k") + in);
    s.set("h",
          scan([&](const Values& c) { return Values{0.9 * c[0] + body(s, c[0], w)}; },
               {h}, {}, options)
              .carry[0]);
    return s.h() + s.h("k");
  });
  m->hidden("k", {4}).hidden("h", {4}).param("v", {4, 4}).param("w", {4, 4});
  return m;
}

CompileOptions closed() {
  CompileOptions o;
  o.control_flow.scan_descent = "off";
  return o;
}

void check_local(const ETraceGraph& g, const std::string& path, const std::string& why) {
  CAPTURE(path);
  CHECK(verdict_of(g, path) == Verdict::local);
  const auto records =
      g.explain({.weight_path = Path{path}, .kind = Kind::parameter_local});
  REQUIRE(records.size() == 1);
  CHECK(records[0].message.find(why) != std::string::npos);
}

// d sum(outputs) / d w of the compiled step against central differences.
void check_step_gradient(const ETraceGraph& g, const Path& path) {
  const Graph& program = g.module_info.step.program;
  std::vector<Array> in = {ones({4}, DType::f64)};
  for (const Array& a : read_states(g.module_info.step)) in.push_back(a);
  std::size_t at = 0;
  while (program.inputs()[at] != g.module_info.step.find(path)->in[0]) ++at;
  const auto total = [&](const std::vector<Array>& values) {
    double sum = 0;
    for (const Array& a : eval_graph(program, values))
      for (double v : a.to_doubles()) sum += v;
    return sum;
  };
  std::vector<Array> seeded = in;
  for (const Type& t : program.output_types())
    if (is_float(t.dtype)) seeded.push_back(ones(t.shape, t.dtype));
  const Array slope = eval_graph(vjp(program), seeded)[program.outputs().size() + at];
  const double h = 1e-6;
  std::vector<Array> up = in, down = in;
  up[at] = in[at].contiguous();
  down[at] = in[at].contiguous();
  up[at].mutable_data<double>()[1] += h;
  down[at].mutable_data<double>()[1] -= h;
  const double want = (total(up) - total(down)) / (2 * h);
  CHECK(want != 1);  // more than the parameter itself among the outputs
  CHECK(slope.at(1) == doctest::Approx(want).epsilon(tol::f64_diff));
}

// Three rounds of c' = f(c), as a loop of unknown length.
Value rounds(const Value& x, const Value& start,
             const std::function<Value(const Value&)>& f) {
  return while_loop([&](const Values& c) { return Values{c[0] < unknown(3, x)}; },
                    [&](const Values& c) {
                      return Values{c[0] + 1, f(c[1])};
                    },
                    {scalar(0, DType::i32), start})[1];
}

std::unique_ptr<MicroModel> with_plain(
    std::function<Value(const Value&, const Value&)> f) {
  auto m = std::make_unique<MicroModel>([=](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w());
    s.set("h", 0.9 * s.h() + y);
    return s.h() + f(x, s.w("p"));
  });
  m->hidden("h", {4}).param("w", {4, 4}).param("p", {4});
  return m;
}

}  // namespace

TEST_CASE("a weight in a long scan that stays closed is local, with the exact gradient") {
  const auto m = looped([](MicroModel&, const Value& c, const Value& w) {
    return 0.1 * tanh(matmul(c, w));
  });
  const ETraceGraph g = m->compile(closed());
  check_local(g, "w", "it is used inside a scan");
  CHECK(verdict_of(g, "v") == Verdict::direct);
  CHECK(g.explain({.weight_path = Path{"w"}, .kind = Kind::weight_in_control_flow})
            .size() == 1);
  CHECK(g.explain({.kind = Kind::primitive_inside_control_flow}).size() == 1);
  check_step_gradient(g, Path{"w"});
}

TEST_CASE("a weight derived outside a closed loop is local too") {
  const auto m = looped([](MicroModel&, const Value& c, const Value& w) {
    return 0.1 * matmul(c, tanh(w));
  });
  check_local(m->compile(closed()), "w", "it is used inside a scan");
}

TEST_CASE("loops that descent cannot open make their weights local") {
  const auto product = [](MicroModel&, const Value& c, const Value& w) {
    return 0.1 * matmul(c, w);
  };
  const auto branching = [](MicroModel&, const Value& c, const Value& w) {
    return cond(
        sum(c) > 0, [&](const Values& v) { return Values{matmul(v[0], w)}; },
        [](const Values& v) { return v; }, {c})[0];
  };
  const std::vector<std::pair<std::unique_ptr<MicroModel>, std::string>> cases = [&] {
    std::vector<std::pair<std::unique_ptr<MicroModel>, std::string>> v;
    v.emplace_back(looped(product, {.length = kLong, .reverse = true}), "backwards");
    v.emplace_back(looped(branching), "control flow");
    return v;
  }();
  for (const auto& [m, why] : cases) {
    const ETraceGraph g = m->compile();
    check_local(g, "w", "it is used inside a scan");
    const auto skipped = g.explain({.kind = Kind::scan_descent_skipped});
    REQUIRE(skipped.size() == 1);
    CHECK(skipped[0].message.find(why) != std::string::npos);
    check_step_gradient(g, Path{"w"});
    CHECK_THROWS_AS(m->compile(compat()), UserError);
  }
}

TEST_CASE("a state that does not enter its long loop unchanged keeps the loop closed") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    s.set("h", scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; },
                    {0.5 * h}, {}, {.length = kLong})
                   .carry[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  check_local(g, "w", "it is used inside a scan");
  CHECK(g.explain({.kind = Kind::scan_descent_skipped}).size() == 1);
  check_step_gradient(g, Path{"w"});
}

TEST_CASE("weights that a long loop reads slice by slice are local") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    s.set("h", scan([&](const Values& v) { return Values{0.9 * v[0] + matmul(x, v[1])}; },
                    {h}, {w})
                   .carry[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {kLong, 4, 4});
  const ETraceGraph g = m.compile();
  check_local(g, "w", "it is used inside a scan");
  check_step_gradient(g, Path{"w"});
}

TEST_CASE("a weight in a branch that is not converted is local") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    s.set("h", cond(
                   sum(x) > 0,
                   [&](const Values& v) { return Values{tanh(v[0] + matmul(x, w))}; },
                   [](const Values& v) { return v; }, {h})[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CompileOptions o;
  o.control_flow.cond = "opaque";
  const ETraceGraph g = m.compile(o);
  check_local(g, "w", "it is used inside a cond");
  check_step_gradient(g, Path{"w"});
  o.control_flow.etp_in_control_flow = "error";
  CHECK_THROWS_WITH_AS(m.compile(o), doctest::Contains("('w',) is used inside a cond"),
                       UserError);
}

TEST_CASE("a plain parameter that acts through a while loop alone is refused by name") {
  const auto m = with_plain([](const Value& x, const Value& p) {
    return rounds(x, x * p, [](const Value& c) { return 0.5 * c; });
  });
  CHECK_THROWS_WITH_AS(m->compile(),
                       doctest::Contains("parameter ('p',) cannot be trained: it acts on "
                                         "the step only through a while loop"),
                       UserError);
  CompileOptions freeze;
  freeze.on_refused = OnRefused::freeze;
  const ETraceGraph g = m->compile(freeze);
  CHECK(verdict_of(g, "p") == Verdict::refused);
  CHECK(verdict_of(g, "w") == Verdict::direct);
  CHECK(g.explain({.weight_path = Path{"p"}, .kind = Kind::parameter_refused}).size() ==
        1);
  CHECK(verdict_of(m->compile(compat()), "p") == Verdict::local);  // silent there
}

TEST_CASE("a plain parameter with a way around the while loop says what is dropped") {
  const auto m = with_plain([](const Value& x, const Value& p) {
    return rounds(x, x * p, [](const Value& c) { return 0.5 * c; }) + p;
  });
  check_local(m->compile(), "p", "what it does through a while loop is not credited");
  // A way that carries no derivative is none.
  const auto stopped = with_plain([](const Value& x, const Value& p) {
    return rounds(x, x * p, [](const Value& c) { return 0.5 * c; }) + stop_gradient(p);
  });
  CHECK_THROWS_AS(stopped->compile(), UserError);
}

TEST_CASE("a parameter whose while loop nobody reads is not refused") {
  const auto m = with_plain([](const Value& x, const Value& p) {
    rounds(x, x * p, [](const Value& c) { return 0.5 * c; });
    return x;
  });
  CHECK(verdict_of(m->compile(), "p") == Verdict::local);
}

TEST_CASE("a weight inside a while loop can be frozen") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    const Value y = matmul(x, s.w("v"));
    s.set("h", rounds(x, h, [&](const Value& c) { return matmul(c, w); }) + y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).param("v", {4, 4});
  CompileOptions freeze;
  freeze.on_refused = OnRefused::freeze;
  const ETraceGraph g = m.compile(freeze);
  CHECK(verdict_of(g, "w") == Verdict::refused);
  CHECK(verdict_of(g, "v") == Verdict::direct);
  CHECK(g.explain({.weight_path = Path{"w"}, .kind = Kind::weight_in_while}).size() == 1);
  CHECK_THROWS_WITH_AS(m.compile(), doctest::Contains("('w',) is used inside a while"),
                       UserError);
}

TEST_CASE("a derived weight in a while loop is refused by name") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = tanh(s.w()), h = s.h();
    s.set("h", rounds(x, h, [&](const Value& c) { return c * w; }));
    return s.h() + x;
  });
  m.hidden("h", {4}).param("w", {4});
  CHECK_THROWS_WITH_AS(m.compile(), doctest::Contains("weight ('w',) is used inside a"),
                       UserError);
}

TEST_CASE("the reference's side opens a long scan that carries two states") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h(), k = s.h("k");
    const auto body = [&](const Values& c) {
      return Values{0.9 * c[0] + matmul(x, w) - 0.1 * c[1], 0.8 * c[1] + 0.1 * c[0]};
    };
    const Values carry = scan(body, {h, k}, {}, {.length = kLong}).carry;
    s.set("h", carry[0]);
    s.set("k", carry[1]);
    return s.h();
  });
  m.hidden("h", {4}).hidden("k", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile(compat(CompileOptions{}));
  REQUIRE(g.hidden_groups.size() == 1);
  CHECK(g.hidden_groups[0].hidden_paths() == std::vector<Path>{{"h"}, {"k"}});
  CHECK(g.hidden_groups[0].descent != nullptr);
}

TEST_CASE("the reference's side takes a product of two states for a boundary") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h(), k = s.h("k");
    s.set("h", 0.5 * h + matmul(x, s.w()) + dot(k, h));
    s.set("k", 0.5 * k + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).hidden("k", {4}).param("w", {4, 4});
  CHECK(m.compile(compat(CompileOptions{})).hidden_groups.size() == 2);
}

TEST_CASE("the reference's side takes the square of a state") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", 0.5 * square(s.h()) + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CHECK(jacobian_of(m.compile(compat(CompileOptions{}))).at(0) == doctest::Approx(0.5));
}

}  // namespace control_flow_test
