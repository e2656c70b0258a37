// SPDX-License-Identifier: Apache-2.0
// The golden tables of small models, in the reference's mode unless a test says
// otherwise.
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/etrace/scan_descent.h"
#include "braintrace/ir/builder.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/transforms/vmap.h"

namespace compile_test {

using namespace braintrace;
using namespace braintrace::testing;
using Kind = DiagnosticKind;

namespace {

std::size_t count(const ETraceGraph& g, Kind k) { return g.explain({.kind = k}).size(); }

std::unique_ptr<MicroModel> leaky() {
  auto m = std::make_unique<MicroModel>([](MicroModel& s, Value x) {
    s.set("h", tanh(0.9 * s.h() + matmul(x, s.w())));
    return s.h();
  });
  m->hidden("h", {4}).param("w", {4, 4});
  return m;
}

// length times c = .9 c + x W
std::unique_ptr<MicroModel> looped(std::int64_t length) {
  auto m = std::make_unique<MicroModel>([length](MicroModel& s, Value x) {
    const Value w = s.w();
    const Value h = s.h();
    s.set("h", scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; },
                    {h}, {}, {.length = length})
                   .carry[0]);
    return s.h();
  });
  m->hidden("h", {4}).param("w", {4, 4});
  return m;
}

}  // namespace

TEST_CASE("a leaky unit: one group, one relation, D = .9 tanh'") {
  for (const CompileOptions& o : {compat(), CompileOptions{}}) {
    const auto m = leaky();
    const ETraceGraph g = m->compile(o);
    REQUIRE(g.hidden_groups.size() == 1);
    REQUIRE(g.hidden_param_op_relations.size() == 1);
    CHECK(g.hidden_param_op_relations[0].path() == Path{"w"});
    CHECK(g.hidden_param_op_relations[0].primitive == "etp_mv");
    const double slope = 1 - std::pow(std::tanh(0.9 * 0.5 + 0.4), 2);
    CHECK(jacobian_of(g).at(0) == doctest::Approx(0.9 * slope).epsilon(1e-12));
    CHECK(g.hidden_groups[0].has_recurrence);
  }
}

TEST_CASE("a tied weight gives one relation per use") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value a = matmul(x, s.w());
    s.set("h", tanh(0.9 * h + a + matmul(h, s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile(compat());
  CHECK(g.hidden_param_op_relations.size() == 2);
  CHECK(CompilationReport(g).etrace_weights.size() == 2);
  CHECK(g.verdicts.size() == 1);
}

TEST_CASE("one op that feeds two groups has one tail for each") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w());
    s.set("h1", tanh(0.9 * s.h("h1") + y));
    s.set("h2", tanh(0.5 * s.h("h2") - y));
    return s.h("h1") + s.h("h2");
  });
  m.hidden("h1", {4}).hidden("h2", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile(compat());
  REQUIRE(g.hidden_param_op_relations.size() == 1);
  CHECK(g.hidden_param_op_relations[0].group_indices == std::vector<std::int64_t>{0, 1});
  CHECK(g.hidden_param_op_relations[0].tails.size() == 2);
}

TEST_CASE("a short scan is unrolled, one relation per iteration") {
  const auto m = looped(3);
  const ETraceGraph g = m->compile(compat());
  CHECK(count(g, Kind::scan_unrolled) == 1);
  CHECK(g.hidden_param_op_relations.size() == 3);
  CHECK(jacobian_of(g).at(0) == doctest::Approx(0.729).epsilon(1e-12));
}

TEST_CASE("a long scan is analysed body by body") {
  const auto m = looped(20);
  const ETraceGraph g = m->compile(compat());
  CHECK(kinds_of(g) == std::vector<std::string>{"scan_unroll_skipped",
                                                "relation_included",
                                                "scan_descent_applied"});
  REQUIRE(g.hidden_param_op_relations.size() == 1);
  REQUIRE(g.hidden_groups.size() == 1);
  CHECK(g.hidden_param_op_relations[0].control_flow_context->length == 20);
  CHECK(g.hidden_groups[0].descent ==
        g.hidden_param_op_relations[0].control_flow_context);
  // Every wanted body value comes out stacked over the 20 sub-steps.
  const ScanDescentInfo& d = *g.hidden_groups[0].descent;
  for (const auto& [inner, outer] : d.stacked)
    CHECK(g.module_info.program().type(outer).shape[0] == 20);
  const ModuleInfo::CallResult call = g.module_info.jaxpr_call({ones({4}, DType::f64)});
  CHECK(call.etrace_vals.at(Path{"h"}).at(0) ==
        doctest::Approx(0.5 * std::pow(0.9, 20) + 0.4 * (1 - std::pow(0.9, 20)) / 0.1));
}

TEST_CASE("without descent a weight in a long scan is refused by name") {
  const auto m = looped(20);
  CompileOptions o = compat();
  o.control_flow.scan_descent = "off";
  CHECK_THROWS_WITH_AS(
      m->compile(o), doctest::Contains("weight ('w',) is used inside a scan"), UserError);
}

TEST_CASE("a cond on the state becomes a select with D of the branch taken") {
  for (double threshold : {-100.0, 100.0}) {
    MicroModel m([threshold](MicroModel& s, Value x) {
      const Value h = s.h(), w = s.w();
      s.set("h",
            cond(
                sum(x) > threshold,
                [&](const Values& in) { return Values{tanh(matmul(in[0], w) + in[1])}; },
                [&](const Values& in) { return Values{in[0]}; }, {h, x})[0]);
      return s.h();
    });
    m.hidden("h", {4}).param("w", {4, 4});
    const ETraceGraph g = m.compile(compat());
    CHECK(count(g, Kind::cond_if_converted) == 1);
    CHECK(jacobian_of(g).at(0) == (threshold < 0 ? 0.0 : 1.0));
  }
}

TEST_CASE("a while on the state is one opaque node with its forward Jacobian") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w());
    const Value h = s.h();
    const Values out = while_loop([](const Values& c) { return Values{c[0] < 3}; },
                                  [](const Values& c) {
                                    return Values{c[0] + 1, 0.9 * c[1]};
                                  },
                                  {scalar(0, DType::i32), h});
    s.set("h", out[1]);
    return s.h() + y;
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile(compat());
  CHECK(count(g, Kind::control_flow_opaque_fwd) == 3);
  CHECK(jacobian_of(g).at(0) == doctest::Approx(0.729).epsilon(1e-12));
  CompileOptions strict = compat();
  strict.control_flow.while_hidden = "error";
  CHECK_THROWS_WITH_AS(m.compile(strict), doctest::Contains("while_hidden is 'error'"),
                       UserError);
}

TEST_CASE("a weight in a while loop is refused by name") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    s.set("h", while_loop([](const Values& c) { return Values{c[0] < 3}; },
                          [&](const Values& c) {
                            return Values{c[0] + 1, matmul(c[1], w)};
                          },
                          {scalar(0, DType::i32), h})[1]);
    return s.h() + x;
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CHECK_THROWS_WITH_AS(m.compile(compat()), doctest::Contains("('w',)"), UserError);
}

TEST_CASE(
    "a plain recurrent product is left out of the transition unless mixing is asked") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value r = dot(h, s.w("R"));
    s.set("h", tanh(0.5 * h + r + matmul(x, s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).param("R", {4, 4});
  const double slope = 1 - std::pow(std::tanh(0.25 + 0.2 + 0.4), 2);
  CHECK(jacobian_of(m.compile(compat())).at(0) == doctest::Approx(0.5 * slope));
  CompileOptions mixed = compat();
  mixed.include_recurrent_mixing = true;
  CHECK(jacobian_of(m.compile(mixed)).at(0) == doctest::Approx((0.5 + 0.1) * slope));
}

TEST_CASE("a read-only state joins the state that reads it") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h2 = s.h("h2");
    s.set("h1", tanh(h2 + matmul(x, s.w())));
    return s.h("h1");
  });
  m.hidden("h1", {4}).hidden("h2", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile(compat());
  REQUIRE(g.hidden_groups.size() == 1);
  CHECK(g.hidden_groups[0].hidden_paths() == std::vector<Path>{Path{"h2"}, Path{"h1"}});
  const Array d = jacobian_of(g);
  const double slope = 1 - std::pow(std::tanh(0.5 + 0.4), 2);
  CHECK(d.at(0) == 1);
  CHECK(d.at(1) == 0);
  CHECK(d.at(2) == doctest::Approx(slope));
  CHECK(d.at(3) == 0);
}

TEST_CASE("a group state has one S x S block per position") {
  MicroModel m([](MicroModel& s, Value x) {
    HiddenGroupState& g = s.g();
    const Value v = g.get(0), a = g.get(1);
    const Value y = matmul(x, s.w());
    g.set_all({0.9 * v - 0.1 * a + y, 0.2 * v + 0.8 * a});
    return g.get(0);
  });
  m.group("h", {4}, 2).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(g.hidden_groups[0].num_state() == 2);
  const Array d = jacobian_of(g);
  CHECK(d.shape() == Shape{4, 2, 2});
  CHECK(d.at(0) == doctest::Approx(0.9));
  CHECK(d.at(1) == doctest::Approx(-0.1));
  CHECK(d.at(2) == doctest::Approx(0.2));
  CHECK(d.at(3) == doctest::Approx(0.8));
  CHECK(verdict_of(g, "w") == Verdict::direct);
}

TEST_CASE("SnAp-2 on a dense RNN reaches every position, own one first") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(x + matmul(h, s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  for (CompileOptions o : {compat(), CompileOptions{}}) {
    o.include_recurrent_mixing = true;
    o.sparse_n = 2;
    const ETraceGraph g = m.compile(o);
    const SnapPattern& p = *g.hidden_groups[0].snap;
    CHECK(p.num_neighbour() == 4);
    CHECK(p.neighbours[2] == std::vector<std::int64_t>{2, 0, 1, 3});
    CHECK(g.hidden_groups[0].trace_state_width() == 4);
    CHECK(p.is_saturated());
  }
}

TEST_CASE("stop_gradient leaves a group without recurrence") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", stop_gradient(0.9 * h) + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile(compat());
  CHECK(!g.hidden_groups[0].has_recurrence);
  CHECK(jacobian_of(g).at(0) == 0);
}

TEST_CASE("a constant weight is named, then the op is left out") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", 0.9 * h + matmul(x, ones({4, 4}, DType::f64)));
    return s.h();
  });
  m.hidden("h", {4});
  CHECK(kinds_of(m.compile(compat())) ==
        std::vector<std::string>{"trainable_invar_not_paramstate",
                                 "relation_excluded_no_paramstate"});
}

TEST_CASE("the reference drops a sliced output for its shape; we keep the newest step") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w());
    s.set("h", 0.9 * s.h() + slice_axis(y, 0, 0, 2));
    return s.h();
  });
  m.hidden("h", {2}).param("w", {4, 4});
  CHECK(kinds_of(m.compile(compat())) ==
        std::vector<std::string>{"relation_excluded_shape_mismatch",
                                 "relation_excluded_non_temporal"});
  CompileOptions local;
  local.weight_paths = WeightPaths::local;
  CHECK(verdict_of(m.compile(local), "w") == Verdict::local);
  CHECK(verdict_of(m.compile(), "w") == Verdict::dense);
}

TEST_CASE("the reference drops a reshaped output for its shape; we trace it") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w());
    s.set("h", 0.9 * s.h() + reshape(y, {2, 3}));
    return s.h();
  });
  m.hidden("h", {2, 3}).param("w", {4, 6});
  CHECK(kinds_of(m.compile(compat())) ==
        std::vector<std::string>{"relation_excluded_shape_mismatch",
                                 "relation_excluded_non_temporal"});
  CHECK(verdict_of(m.compile(), "w") == Verdict::direct);
}

TEST_CASE("a product mapped over lanes inside the step is one matrix product") {
  const auto b = Builder::create();
  const Value row = b->input({DType::f64, {4}}), weight = b->input({DType::f64, {4, 4}});
  const Graph lane = b->finish(std::vector{matmul(row, weight)});
  const Graph lanes = vmap(lane, 3, {.in_axes = {0, std::nullopt}});
  for (const CompileOptions& o : {compat(), CompileOptions{}}) {
    MicroModel m([&](MicroModel& s, Value x) {
      const Value h = s.h();
      s.set("h", 0.9 * h + inline_graph(lanes, std::vector{x, s.w()})[0]);
      return s.h();
    });
    m.hidden("h", {3, 4}).param("w", {4, 4});
    const ETraceGraph g = m.compile(o, {3, 4});
    REQUIRE(g.hidden_param_op_relations.size() == 1);
    CHECK(g.hidden_param_op_relations[0].primitive == "etp_mm");
    CHECK(g.hidden_param_op_relations[0].path() == Path{"w"});
    CHECK(verdict_of(g, "w") == Verdict::direct);
    CHECK(jacobian_of(g, 0, {3, 4}).at(0) == doctest::Approx(0.9));
  }
}

TEST_CASE("a captured state is used, and on record under a name of its own") {
  HiddenState outside({4}, constant_init(0.5));
  outside.initialize(rng_key(0), {.dtype = DType::f64});
  MicroModel m([&](MicroModel& s, Value x) {
    outside.set(0.9 * outside.value() + matmul(x, s.w()));
    return outside.value();
  });
  m.param("w", {4, 4});
  const ETraceGraph g = m.compile(compat());
  CHECK(g.hidden_groups.at(0).hidden_paths() ==
        std::vector<Path>{Path{"_unknown_path_0"}});
  const auto records = g.explain({.kind = Kind::state_mismatch});
  REQUIRE(records.size() == 1);
  CHECK(records[0].level == DiagnosticLevel::warning);
  CHECK(records[0].context == std::vector<std::pair<std::string, std::string>>{
                                  {"direction", "'compiled_not_in_retrieved'"},
                                  {"path", "('_unknown_path_0',)"}});
}

TEST_CASE("dynamic states are listed") {
  MicroModel m([](MicroModel& s, Value x) {
    s.other("t").set(s.other("t").value() + 1.0);
    s.set("h", 0.9 * s.h() + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).dynamic("t", {});
  const std::string text = CompilationReport(m.compile(compat())).to_str(1);
  CHECK(text.find(
            "The dynamic (non-hidden) states are:\n\n   Dynamic state 0: ('t',)\n\n\n") !=
        std::string::npos);
}

TEST_CASE("the perturbed program adds to the state and all its readers") {
  const auto m = leaky();
  const ETraceGraph g = m->compile();
  std::vector<Array> p = g.hidden_perturb->init_perturb_data();
  const auto base = g.call_hidden_perturb({ones({4}, DType::f64)}, p);
  p[0] = full({4}, 0.25, DType::f64);
  const auto moved = g.call_hidden_perturb({ones({4}, DType::f64)}, p);
  CHECK(moved.etrace_vals.at(Path{"h"}).at(0) - base.etrace_vals.at(Path{"h"}).at(0) ==
        doctest::Approx(0.25));
  CHECK(moved.out[0].at(0) - base.out[0].at(0) == doctest::Approx(0.25));
  CHECK_THROWS_WITH_AS(
      g.hidden_perturb->perturb_data_to_hidden_group_data({}, g.hidden_groups),
      doctest::Contains("1 states are perturbed, got 0"), UserError);
}

TEST_CASE("sparse_n is checked before anything is traced") {
  const auto m = leaky();
  CompileOptions o;
  o.sparse_n = 0;
  CHECK_THROWS_WITH_AS(m->compile(o), doctest::Contains("sparse_n must be >= 1, got 0"),
                       UserError);
  o.sparse_n = 2;
  CHECK_THROWS_WITH_AS(m->compile(o), doctest::Contains("needs include_recurrent_mixing"),
                       UserError);
}

}  // namespace compile_test
