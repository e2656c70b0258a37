// SPDX-License-Identifier: Apache-2.0
// Every named option, flipped alone: what the default gives, what the other value gives
// (docs/differences.md tells why).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/online_trial.h"

namespace named_options_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// ---- what the compiler finds ----------------------------------------------------------

using Step = MicroModel::Step;

using Look = std::function<std::string(const ETraceGraph&)>;

std::string seen(const LearnerOptions& o, const Step& step,
                 const std::vector<std::string>& hidden,
                 const std::vector<std::string>& params, const Look& look) {
  MicroModel m(step);
  for (const std::string& h : hidden) m.hidden(h, {4});
  for (const std::string& p : params) m.param(p, {4, 4});
  return look(m.compile(o.graph));
}

Look verdict(const std::string& path) {
  return [path](const ETraceGraph& g) {
    return std::string(to_string(verdict_of(g, path)));
  };
}
std::string block(const ETraceGraph& g) {
  return fmt::format("D = {:.1f}", jacobian_of(g).at(0));
}

std::string weight_paths(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + matmul(tanh(matmul(x, s.w("w1"))), s.w("w2")));
    return s.h();
  };
  return seen(o, step, {"h"}, {"w1", "w2"}, verdict("w1"));
}

std::string mixing(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    s.set("h", 0.5 * s.h() + 0.1 * sum(s.h()) + matmul(x, s.w()));
    return s.h();
  };
  return seen(o, step, {"h"}, {"w"}, block);
}

std::string grouping(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    s.set("h1", 0.9 * s.h("h1"));
    const Value h2 = s.h("h2");
    s.set("h2", 0.8 * h2 + s.h("h1") + matmul(x, s.w()));
    return s.h("h2");
  };
  return seen(o, step, {"h1", "h2"}, {"w"}, [](const ETraceGraph& g) {
    return fmt::format("{} groups", g.hidden_groups.size());
  });
}

std::string shape_filter(const LearnerOptions& o) {
  MicroModel m([](MicroModel& s, Value x) {
    const Value v = s.g().get(0), a = s.g().get(1);
    s.g().set_all({0.9 * v + matmul(x, s.w()), 0.8 * a});
    return s.g().get(0);
  });
  m.group("h", {3}, 2).param("w", {4, 3});
  return std::string(to_string(verdict_of(m.compile(o.graph), "w")));
}

std::string exclusion_label(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + matmul(x, s.w("w")));
    return matmul(matmul(s.h(), s.w("r1")), s.w("r2"));
  };
  return seen(o, step, {"h"}, {"w", "r1", "r2"}, [](const ETraceGraph& g) {
    for (const auto& w : CompilationReport(g).excluded_weights)
      if (w.path == Path{"r1"}) return w.reason;
    return std::string("?");
  });
}

std::string two_state_equations(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    const Value h = s.h(), k = s.h("k");
    s.set("h", h * k + matmul(x, s.w()));
    s.set("k", 0.5 * k);
    return s.h();
  };
  try {
    return seen(o, step, {"h", "k"}, {"w"}, block);
  } catch (const UserError&) {
    return "refused";
  }
}

std::string opaque_records(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w()), h = s.h();
    const auto more = [&](const Values& c) { return Values{c[0] < unknown(3, x)}; };
    const auto body = [](const Values& c) { return Values{c[0] + 1, 0.9 * c[1]}; };
    s.set("h", while_loop(more, body, {scalar(0, DType::i32), h})[1]);
    return s.h() + y;
  };
  return seen(o, step, {"h"}, {"w"}, [](const ETraceGraph& g) {
    const auto records = g.explain({.kind = DiagnosticKind::control_flow_opaque_fwd});
    return records.size() == 1 ? std::string("once") : std::string("again");
  });
}

std::string weight_source(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + matmul(x, s.w("w1") + s.w("w2")));
    return s.h();
  };
  return seen(o, step, {"h"}, {"w1", "w2"}, [](const ETraceGraph& g) {
    const Prologue& p = g.hidden_param_op_relations[0].trainables[0].prologue;
    return fmt::format("{} parameters", p.parameters.size());
  });
}

std::string counted_loops(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    const Value y = matmul(x, s.w()), h = s.h();
    const auto body = [](const Values& c) { return Values{c[0] + 1, 0.9 * c[1]}; };
    s.set("h", while_loop([](const Values& c) { return Values{c[0] < 3}; }, body,
                          {scalar(0, DType::i32), h})[1] +
                   y);
    return s.h();
  };
  return seen(o, step, {"h"}, {"w"}, [](const ETraceGraph& g) {
    return has_while(g.module_info.program()) ? std::string("while")
                                              : std::string("none");
  });
}

std::string snap_fallback(const LearnerOptions& o) {
  OnlineTrial t{.model = R"({"model": {"kind": "leaky_rnn", "n_in": 3, "n_rec": 4,
                             "n_out": 2}})",
                .input = {3},
                .batch_size = 2,
                .options = o};
  const auto m = t.build();
  const Learner l = t.learner(*m, SnAp{.n = 2});
  return fmt::format("K = {}", l.graph().hidden_groups[0].snap->num_neighbour());
}

std::string on_refused(const LearnerOptions& o) {
  const Step step = [](MicroModel& s, Value x) {
    const Value w = s.w("u"), y = matmul(x, s.w());
    const Value r =
        while_loop([](const Values& c) { return Values{sum(c[0]) > 1.0}; },
                   [&](const Values& c) { return Values{dot(c[0], w)}; }, {x})[0];
    s.set("h", 0.9 * s.h() + y + r);
    return s.h();
  };
  try {
    return seen(o, step, {"h"}, {"w", "u"}, verdict("u"));
  } catch (const UserError&) {
    return "error";
  }
}

// ---- what a learner gives -------------------------------------------------------------

OnlineTrial trial(const LearnerOptions& o, const std::string& model,
                  std::int64_t steps = 4) {
  return {
      .model = R"({"model": )" + model + "}", .input = {3}, .steps = steps, .options = o};
}

std::string equals_bptt(const OnlineTrial& t, const Algorithm& a,
                        const std::string& leaf) {
  const StateDict exact = t.bptt();
  REQUIRE(largest(exact, leaf) > 1e-4);
  return relative_distance(t.online(a), exact, leaf) < 1e-8 ? "exact" : "not exact";
}

std::string plain_params(const LearnerOptions& o) {
  const OnlineTrial t =
      trial(o, R"({"kind": "plain_and_etp", "n_in": 3, "n_rec": 4, "n_out": 2})", 1);
  return largest(t.online(D_RTRL{}), "wout") == 0 ? "zero"
                                                  : equals_bptt(t, D_RTRL{}, "wout");
}

// One step: w1 reaches the state directly and through w2.
std::string newest(const LearnerOptions& o) {
  return equals_bptt(trial(o, R"({"kind": "mixed_path", "n_in": 3, "n_rec": 4})", 1),
                     D_RTRL{}, "w1");
}

// a reads the new V: the total adjoint of V counts that path twice.
std::string signal(const LearnerOptions& o) {
  return equals_bptt(trial(o, R"({"kind": "two_state_chain", "n_in": 3, "n_rec": 4})"),
                     D_RTRL{}, "w");
}

std::string prologue(const LearnerOptions& o) {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", 0.0 * s.h() + matmul(x, 3 * s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  LearnerOptions with = o;
  with.learning.newest = Newest::trace;
  Learner l = compile(m, D_RTRL{}, ones({4}), with);
  const GradResult r =
      l.etrace_grad(ones({1, 4}), zeros({1, 4}),
                    [&](const Value& x, const Value&) { return sum(l(x)); });
  return fmt::format("{:.1f}", r.grads.at("w").at(0));
}

// Windows of two: three calls are six steps of smoothing.
std::string bias_correction(const LearnerOptions& o) {
  OnlineTrial t = trial(o, R"({"kind": "leaky_linear", "n_in": 3, "n_rec": 4})", 6);
  const Algorithm pp = pp_prop{.decay_or_rank = 0.5, .vjp_method = VjpMethod::multi_step};
  OnlineTrial other = t;
  other.options.learning.bias_correction = BiasCorrection::trace_steps;
  return relative_distance(t.online(pp, 2), other.online(pp, 2)) < 1e-12 ? "by steps"
                                                                         : "by calls";
}

std::string kappa_advance(const LearnerOptions& o) {
  const OnlineTrial t = trial(o, R"({"kind": "leaky_linear", "n_in": 3, "n_rec": 4})");
  const auto m = t.build();
  Learner l = t.learner(*m, EProp{.kappa_filter_decay = 0.7});
  l.etrace_evolve({t.inputs()});
  for (const TraceView& v : l.etraces())
    if (v.slot.kind == "kappa_filtered") return v.value.at(0) == 0 ? "still" : "moved";
  return "?";
}

// One output is made of the state from before the step.
std::string old_states(const LearnerOptions& o) {
  MicroModel m([](MicroModel& s, Value x) {
    const Value old = s.h();
    s.set("h", 0.5 * old + matmul(x, s.w()));
    return old;
  });
  m.hidden("h", {4}).param("w", {4, 4});
  Learner l = compile(m, D_RTRL{}, ones({4}), o);
  const GradResult r =
      l.etrace_grad(ones({2, 4}), zeros({2, 4}),
                    [&](const Value& x, const Value&) { return sum(l(x)); });
  return fmt::format("{:.1f}", r.grads.at("w").at(0));
}

std::string uoro_theta(const LearnerOptions& o) {
  OnlineTrial t = trial(o, R"({"kind": "tanh_rnn", "n_in": 3, "n_rec": 4})");
  t.batch_size = 2;
  const auto m = t.build();
  const Learner l = t.learner(*m, UORO{});
  for (const TraceView& v : l.etraces())
    if (v.slot.kind == "theta_tilde") return to_string(v.value.shape());
  return "?";
}

// Deep credit crosses layers inside a window, so that its length matters.
std::string history(const LearnerOptions& o) {
  OnlineTrial steps = trial(o, R"({"kind": "sequential", "in_shape": [3], "layers": [
      {"name": "a", "class": "GRUCell", "args": {"in_size": 3, "out_size": 4}},
      {"name": "b", "class": "GRUCell", "args": {"in_size": 4, "out_size": 4}}]})",
                            6);
  OnlineTrial window = steps;
  window.window = 3;
  const double apart = relative_distance(window.online(D_RTRL{}), steps.online(D_RTRL{}),
                                         "a/Wz/weight/weight");
  return apart < 1e-10 ? "any window" : "this window";
}

struct Row {
  std::string name;
  std::string value;  // instead of the default
  std::string (*observe)(const LearnerOptions&);
  std::string by_default, flipped;
};

const Row kRows[] = {
    {"weight_paths", "local", weight_paths, "dense", "local"},
    {"weight_paths", "dense", weight_paths, "dense", "dense"},
    {"weight_paths", "exclude", weight_paths, "dense", "local"},
    {"mixing", "sum", mixing, "D = 0.5", "D = 0.9"},
    {"grouping", "reference", grouping, "1 groups", "2 groups"},
    {"shape_filter", "raw_broadcast", shape_filter, "direct", "dense"},
    {"exclusion_label", "met", exclusion_label, "relation_excluded_non_temporal",
     "relation_excluded_weight_to_weight"},
    {"two_state_equations", "refuse", two_state_equations, "D = 0.5", "refused"},
    {"opaque_records", "twice", opaque_records, "once", "again"},
    {"weight_source", "first_found", weight_source, "2 parameters", "1 parameters"},
    {"snap_fallback", "all_axes", snap_fallback, "K = 4", "K = 8"},
    {"counted_loops", "keep", counted_loops, "none", "while"},
    {"on_refused", "freeze", on_refused, "error", "refused"},
    {"plain_params", "zero", plain_params, "exact", "zero"},
    {"newest", "trace", newest, "exact", "not exact"},
    {"signal", "total", signal, "exact", "not exact"},
    {"history", "deep", history, "any window", "this window"},
    {"prologue", "drop", prologue, "3.0", "1.0"},
    {"bias_correction", "calls", bias_correction, "by steps", "by calls"},
    {"kappa_advance", "on_gradient", kappa_advance, "moved", "still"},
    {"old_states", "drop", old_states, "0.5", "0.0"},
    {"uoro_theta", "shared", uoro_theta, "[2,4,4]", "[4,4]"},
};

}  // namespace

TEST_CASE("every named option changes what its table says, and nothing has no row") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    CAPTURE(row.value);
    LearnerOptions flipped;
    if (!set_option(flipped.learning, row.name, row.value))
      set_option(flipped.graph, row.name, row.value);
    CHECK(row.observe(LearnerOptions{}) == row.by_default);
    CHECK(row.observe(flipped) == row.flipped);
  }
  std::vector<std::string> all = option_names();
  for (const std::string& n : learning_option_names()) all.push_back(n);
  for (const std::string& name : all) {
    CAPTURE(name);
    CHECK(std::any_of(std::begin(kRows), std::end(kRows),
                      [&](const Row& r) { return r.name == name; }));
  }
}

TEST_CASE("compat is the preset of the reference's side of every option") {
  LearnerOptions all;
  for (const Row& row : kRows) {
    if (row.name == "on_refused" || row.name == "history")
      continue;  // the reference has no such thing
    if (!set_option(all.learning, row.name, row.value))
      set_option(all.graph, row.name, row.value);
  }
  const LearnerOptions preset = compat(LearnerOptions{});
  CHECK(all.learning == preset.learning);
  CHECK(all.graph.weight_paths == preset.graph.weight_paths);
  CHECK(all.graph.mixing == preset.graph.mixing);
  CHECK(all.graph.grouping == preset.graph.grouping);
  CHECK(all.graph.shape_filter == preset.graph.shape_filter);
  CHECK(all.graph.exclusion_label == preset.graph.exclusion_label);
  CHECK(all.graph.two_state_equations == preset.graph.two_state_equations);
  CHECK(all.graph.opaque_records == preset.graph.opaque_records);
  CHECK(all.graph.weight_source == preset.graph.weight_source);
  CHECK(all.graph.snap_fallback == preset.graph.snap_fallback);
  CHECK(all.graph.counted_loops == preset.graph.counted_loops);
}

}  // namespace named_options_test
