// SPDX-License-Identifier: Apache-2.0
// What the default mode does better than the reference: one test per known fault.
#include <doctest/doctest.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/micro_model.h"

namespace soundness_test {

using namespace braintrace;
using namespace braintrace::testing;
using Kind = DiagnosticKind;

namespace {

const CompilationRecord* first(const ETraceGraph& g, Kind k) {
  for (const CompilationRecord& r : g.diagnostics)
    if (r.kind == k) return &r;
  return nullptr;
}

}  // namespace

TEST_CASE("a prologue is known by its parameters, all of them") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w1 = s.w("w1"), w2 = s.w("w2");
    s.set("h", 0.9 * s.h() + matmul(x, 3 * w1 + w2));
    return s.h();
  });
  m.hidden("h", {4}).param("w1", {4, 4}).param("w2", {4, 4});
  const ETraceGraph g = m.compile();
  const Trainable& t = g.hidden_param_op_relations[0].trainables[0];
  CHECK(t.prologue.parameters.size() == 2);
  CHECK(!t.prologue.is_identity());
  CHECK(verdict_of(g, "w1") == Verdict::direct);
  CHECK(verdict_of(g, "w2") == Verdict::direct);
  for (const char* w : {"w1", "w2"})
    CHECK(g.explain({.weight_path = Path{w}, .kind = Kind::relation_included}).size() ==
          1);
  const ETraceGraph r = m.compile(compat());
  CHECK(r.hidden_param_op_relations[0].trainables[0].prologue.parameters.size() == 1);
  CHECK(CompilationReport(r).excluded_weights.size() == 1);
}

TEST_CASE("a member whose own recurrence is cut still has an output in the transition") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h1 = s.h("h1");
    const Value h2 = s.h("h2");
    s.set("h1", tanh(matmul(h1, s.w()) + x));
    s.set("h2", 0.9 * h2 + h1);
    return s.h("h2");
  });
  m.hidden("h1", {4}).hidden("h2", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  REQUIRE(g.hidden_groups.size() == 1);
  const Array d = jacobian_of(g);
  CHECK(d.to_doubles() ==
        std::vector<double>{0, 0, 1, 0.9, 0, 0, 1, 0.9, 0, 0, 1, 0.9, 0, 0, 1, 0.9});
}

TEST_CASE("grouping does not depend on how many ops lie between") {
  for (bool with_input : {false, true}) {
    MicroModel m([with_input](MicroModel& s, Value x) {
      const Value h1 = 0.9 * s.h("h1");
      s.set("h1", with_input ? h1 + x : h1);
      const Value h2 = s.h("h2");
      const Value y = matmul(x, s.w());
      s.set("h2", 0.8 * h2 + s.h("h1") + y);
      return s.h("h2");
    });
    m.hidden("h1", {4}).hidden("h2", {4}).param("w", {4, 4});
    CHECK(m.compile().hidden_groups.size() == 1);
    CHECK(m.compile(compat()).hidden_groups.size() == (with_input ? 1 : 2));
  }
}

TEST_CASE("a reduction in the transition is cut and named; the block is the true one") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value y = matmul(x, s.w());
    s.set("h", 0.5 * h + 0.1 * sum(h) + y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(jacobian_of(g).at(0) == doctest::Approx(0.5));
  const CompilationRecord* cut = first(g, Kind::history_cut);
  REQUIRE(cut);
  CHECK(cut->primitive == "reduce_sum");
  CHECK(cut->hidden_paths == std::vector<Path>{Path{"h"}});
  // The reference takes the column sum.
  CHECK(jacobian_of(m.compile(compat())).at(0) == doctest::Approx(0.9));
}

TEST_CASE("a rolled tail is not position by position") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w());
    s.set("h", 0.9 * s.h() + roll(y, 1));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CompileOptions local;
  local.weight_paths = WeightPaths::local;
  CHECK(verdict_of(m.compile(local), "w") == Verdict::local);
  CHECK(verdict_of(m.compile(compat()), "w") == Verdict::direct);  // silently wrong there
}

TEST_CASE("a layer norm between op and state is cut at its means, and they are named") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = layer_norm(matmul(x, s.w()));
    s.set("h", 0.9 * s.h() + y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(verdict_of(g, "w") == Verdict::direct);
  const auto cuts = g.explain({.weight_path = Path{"w"}, .kind = Kind::history_cut});
  REQUIRE(!cuts.empty());
  for (const CompilationRecord& r : cuts) CHECK(r.primitive == "reduce_sum");
  CHECK(m.compile(compat()).explain({.kind = Kind::history_cut}).empty());
}

TEST_CASE("a vector output fits a group state of any number of states") {
  for (std::int64_t n : {2, 3}) {
    MicroModel m([](MicroModel& s, Value x) {
      HiddenGroupState& g = s.g();
      const Value v = g.get(0), a = g.get(1);
      const Value y = matmul(x, s.w());
      g.set_all({0.9 * v + y, 0.8 * a});
      return g.get(0);
    });
    m.group("h", {n}, 2).param("w", {4, n});
    CHECK(verdict_of(m.compile(), "w") == Verdict::direct);
    // Raw shapes (n,) and (n, 2) broadcast for n = 2 only; the option decides in any
    // mode.
    for (CompileOptions o : {CompileOptions{}, compat()}) {
      o.shape_filter = ShapeFilter::raw_broadcast;
      CHECK((verdict_of(m.compile(o), "w") == Verdict::direct) == (n == 2));
      o.shape_filter = ShapeFilter::positions;
      CHECK(verdict_of(m.compile(o), "w") == Verdict::direct);
    }
  }
}

TEST_CASE("a flattened tail is position by position") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(reshape(x, {2, 2}), s.w());
    s.set("h", 0.9 * s.h() + reshape(y, {-1}));
    return s.h();
  });
  m.hidden("h", {6}).param("w", {2, 3});
  CHECK(verdict_of(m.compile(), "w") == Verdict::direct);
}

TEST_CASE("two states with one value, and swapped states, keep their recurrence") {
  MicroModel same([](MicroModel& s, Value x) {
    const Value v = 0.9 * s.h("h1") + matmul(x, s.w());
    s.set("h1", v);
    s.set("h2", v);
    return s.h("h2");
  });
  same.hidden("h1", {4}).hidden("h2", {4}).param("w", {4, 4});
  const ETraceGraph g = same.compile();
  CHECK(g.group_of(Path{"h1"}).has_recurrence);
  CHECK(g.group_of(Path{"h2"}).contains(Path{"h1"}));

  MicroModel swapped([](MicroModel& s, Value x) {
    const Value a = s.h("h1"), b = s.h("h2");
    const Value y = matmul(x, s.w());
    s.set("h1", b);
    s.set("h2", a);
    return y;
  });
  swapped.hidden("h1", {4}).hidden("h2", {4}).param("w", {4, 4});
  const Array d = jacobian_of(swapped.compile());
  CHECK(d.at(0) == 0);
  CHECK(d.at(1) == 1);
  CHECK(d.at(2) == 1);
  CHECK(d.at(3) == 0);
}

TEST_CASE("an equation may read two states, or one twice") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h("h1"), k = s.h("h2");
    const Value y = matmul(x, s.w());
    s.set("h1", h * h + y);
    s.set("h2", h * k);
    return s.h("h1");
  });
  m.hidden("h1", {4}).hidden("h2", {4}).param("w", {4, 4});
  const Array d = jacobian_of(m.compile());
  CHECK(d.at(0) == doctest::Approx(1.0));  // 2 h
  CHECK(d.at(2) == doctest::Approx(0.5));
  CHECK(d.at(3) == doctest::Approx(0.5));
  CHECK_THROWS_WITH_AS(m.compile(compat()), doctest::Contains("reads 2 hidden states"),
                       UserError);
}

TEST_CASE("weight_to_weight is said only when a state lies beyond the other weight") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w("w"));
    s.set("h", 0.9 * s.h() + y);
    return matmul(matmul(s.h(), s.w("r1")), s.w("r2"));
  });
  m.hidden("h", {4}).param("w", {4, 4}).param("r1", {4, 4}).param("r2", {4, 2});
  const auto label = [](const ETraceGraph& g) {
    for (const auto& w : CompilationReport(g).excluded_weights)
      if (w.path == Path{"r1"}) return w.reason;
    return std::string("?");
  };
  CHECK(label(m.compile()) == "relation_excluded_non_temporal");
  CHECK(label(m.compile(compat())) == "relation_excluded_weight_to_weight");
}

TEST_CASE("influence that leaves a group is recorded as cut") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w());
    s.set("h1", 0.9 * s.h("h1") + y);
    s.set("h2", 0.5 * s.h("h2") + sum(s.h("h1")));
    return s.h("h2");
  });
  m.hidden("h1", {4}).hidden("h2", {2}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(g.hidden_groups.size() == 2);
  const auto records = g.explain({.hidden_path = Path{"h2"}, .kind = Kind::history_cut});
  REQUIRE(records.size() == 1);
  CHECK(records[0].primitive == "reduce_sum");
}

TEST_CASE("a derived weight in a cond makes the cond relevant") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = 1.0 * s.w();
    const Value h = s.h();
    const Value y = cond(
        sum(x) > 0, [&](const Values&) { return Values{matmul(x, w)}; },
        [&](const Values&) { return Values{-matmul(x, w)}; }, {})[0];
    s.set("h", 0.9 * h + y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(g.hidden_param_op_relations.size() == 2);
  CHECK(verdict_of(g, "w") == Verdict::direct);
}

TEST_CASE("a weight outside a long loop keeps its sensitivity to the loop's state") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value in = roll(matmul(x, s.w("u")), 1);
    const Value w = s.w(), h = s.h();
    s.set("h", scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(in, w)}; },
                    {h}, {}, {.length = 20})
                   .carry[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("u", {4, 4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(verdict_of(g, "u") == Verdict::dense);
  CHECK(verdict_of(g, "w") == Verdict::direct);
  const HiddenParamOpRelation& r = g.hidden_param_op_relations[0];
  REQUIRE(r.path() == Path{"u"});
  // Its tail ends at the state the step hands out, not at a value of the body.
  const auto call = g.module_info.jaxpr_call({ones({4}, DType::f64)});
  std::vector<Array> in;
  for (ValueId v : r.tail_constants[0]) in.push_back(call.temps.at(v));
  in.push_back(call.temps.at(r.y));
  CHECK(eval_graph(r.tails[0], in)[0] == call.etrace_vals.at(Path{"h"}));
}

TEST_CASE("a shared element-wise weight is traced in a batch") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value decay = sigmoid(element_wise(s.w("a")));
    s.set("h", decay * s.h() + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).param("a", {4});
  init_all_states(m, {.batch_size = 3, .dtype = DType::f64});
  const ETraceGraph g = compile_etrace_graph(m, {ones({3, 4}, DType::f64)});
  CHECK(verdict_of(g, "a") == Verdict::direct);
  CHECK(verdict_of(g, "w") == Verdict::direct);
}

TEST_CASE("a plain parameter gets a local verdict with its reason") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value in = dot(x, s.w("p"));
    s.set("h", 0.9 * s.h() + in + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4}).param("p", {4, 4});
  const ETraceGraph g = m.compile();
  CHECK(verdict_of(g, "p") == Verdict::local);
  const auto records = g.explain({.weight_path = Path{"p"}});
  REQUIRE(records.size() == 1);
  CHECK(records[0].message.find("it acts on hidden states through ") !=
        std::string::npos);
}

TEST_CASE("every option can be set by name, and nothing else") {
  CompileOptions o;
  set_option(o, "mixing", "sum");
  CHECK(o.mixing == Mixing::sum);
  set_option(o, "weight_paths", "exclude");
  CHECK(o.weight_paths == WeightPaths::exclude);
  CHECK_THROWS_WITH_AS(set_option(o, "mixing", "average"),
                       "set_option: mixing must be one of cut, sum, got 'average'",
                       UserError);
  CHECK_THROWS_WITH_AS(set_option(o, "mix", "sum"), doctest::Contains("no option 'mix'"),
                       UserError);
}

TEST_CASE(
    "a loop whose body keeps positions is part of the transition, one that mixes is "
    "not") {
  for (bool mixes : {false, true}) {
    MicroModel m([mixes](MicroModel& s, Value x) {
      const Value y = matmul(x, s.w());
      const Value h = s.h();
      const Array ring = full({4, 4}, 0.1, DType::f64);
      const auto body = [&](const Values& c) {
        return Values{c[0] + 1, mixes ? dot(c[1], ring) : 0.9 * c[1]};
      };
      const auto more = [&](const Values& c) { return Values{c[0] < unknown(3, x)}; };
      s.set("h", while_loop(more, body, {scalar(0, DType::i32), h})[1]);
      return s.h() + y;
    });
    m.hidden("h", {4}).param("w", {4, 4});
    const ETraceGraph g = m.compile();
    CHECK(g.hidden_groups[0].has_recurrence == !mixes);
    CHECK((first(g, Kind::control_flow_recurrent_mixing) != nullptr) == mixes);
    CHECK(jacobian_of(g).at(0) == doctest::Approx(mixes ? 0.0 : 0.729));
    CHECK((first(m.compile(compat()), Kind::control_flow_recurrent_mixing) != nullptr) ==
          mixes);
  }
}

TEST_CASE("layers in a list that feed each other element by element are one group") {
  struct Unit : Module {
    HiddenState h{{4}};
    Unit() { add("h", h); }
  };
  struct Stack : Module {
    Unit first, second;
    ParamState w{{4, 4}, constant_init(0.1)};
    Stack() {
      Module* layers[] = {&first, &second};
      add("layers", std::span<Module* const>(layers));
      add("w", w);
    }
    Value update(Value x) override {
      const Value y = matmul(x, w.value());
      first.h.set(0.9 * first.h.value() + y);
      second.h.set(0.8 * second.h.value() + first.h.value());
      return second.h.value();
    }
  } model;
  init_all_states(model);
  CHECK(compile_etrace_graph(model, {ones({4})}).hidden_groups.size() == 1);
  // The reference takes integer keys for different layers and drops the credit.
  CHECK(compile_etrace_graph(model, {ones({4})}, compat()).hidden_groups.size() == 2);
}

TEST_CASE("weights that a short loop reads slice by slice are traced") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h(), weights = s.w();
    s.set("h", scan([&](const Values& v) { return Values{0.9 * v[0] + matmul(x, v[1])}; },
                    {h}, {weights})
                   .carry[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {3, 4, 4});
  const ETraceGraph g = m.compile();
  CHECK(verdict_of(g, "w") == Verdict::direct);
  CHECK(g.hidden_param_op_relations.size() == 3);
  CHECK_THROWS_AS(m.compile(compat()), UserError);  // it stays a loop that holds a weight
}

TEST_CASE("a branch that is not taken cannot poison reverse mode") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    const Value y = matmul(x, s.w());
    s.set("h",
          cond(
              sum(h) > 100.0, [](const Values& in) { return Values{log(in[0] - 0.5)}; },
              [](const Values& in) { return Values{0.9 * in[0]}; }, {h})[0] +
              y);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  // h = 0.5: the dead branch is log(0), its slope infinite.
  CHECK(jacobian_of(m.compile()).at(0) == doctest::Approx(0.9));
}

}  // namespace soundness_test
