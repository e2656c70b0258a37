// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/dense_rule.h"

#include <doctest/doctest.h>

#include "braintrace/testing/bptt.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/online_trial.h"
#include "braintrace/testing/tolerance.h"

namespace dense_rule_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

const std::string gru =
    R"({"kind": "layer", "class": "GRUCell", "args": {"in_size": 3, "out_size": 4}})";
const std::string wide_gru =
    R"({"kind": "layer", "class": "GRUCell", "args": {"in_size": 40, "out_size": 3}})";

OnlineTrial gru_trial(std::int64_t steps, std::optional<std::int64_t> batch = {}) {
  return {.model = gru, .input = {3}, .batch_size = batch, .steps = steps};
}

// A GRU whose candidate reads a copy of h without credit, its gates too: the program
// whose past D_RTRL with a dense Wr keeps. Wr itself is reached along the whole step.
struct CutGru : Module {
  ParamState wz, wr, wh;
  HiddenState h;
  CutGru()
      : wz({7, 4}, constant_init(0.1)),
        wr({7, 4}, constant_init(0.1)),
        wh({7, 4}, constant_init(0.1)),
        h({4}, constant_init(0.5)) {
    add("Wz", wz);
    add("Wr", wr);
    add("Wh", wh);
    add("h", h);
  }
  // `cut`: the old state as mixing ops see it.
  Value step(const Value& x, const Value& old, const Value& cut) {
    const Value z = sigmoid(matmul(concat({x, cut}), wz.value()));
    const Value r = sigmoid(matmul(concat({x, cut}), wr.value()));
    const Value c = tanh(matmul(concat({x, r * cut}), wh.value()));
    return (1 - z) * old + z * c;
  }
  Value update(Value x) override {
    const Value old = h.value();
    h.set(step(x, old, cut ? stop_gradient(old) : old));
    return h.value();
  }
  bool cut = false;
};

void set_weights(CutGru& m) {
  std::uint64_t k = 0;
  for (ParamState* p : {&m.wz, &m.wr, &m.wh})
    p->store(0, random_normal(fold_in(rng_key(5), ++k), {7, 4}, DType::f64));
}

}  // namespace

TEST_CASE("the past of a GRU's reset gate is that of the program with its products cut") {
  for (const std::int64_t steps : {2, 5}) {
    CAPTURE(steps);
    const Array xs = random_normal(rng_key(1), {steps, 3}, DType::f64);
    const Array ys = random_normal(rng_key(2), {steps, 4}, DType::f64);
    auto loss = [&](std::size_t t, const Values& y) {
      return sum(square(y[0] - Value(row(ys, static_cast<std::int64_t>(t)))));
    };
    CutGru m;
    Learner l = compile(m, D_RTRL{}, zeros({3}, DType::f64), {.dtype = DType::f64});
    set_weights(m);
    const GradResult got = l.etrace_grad(
        xs, ys, [&](const Value& x, const Value& y) { return sum(square(l(x) - y)); },
        {.window = 1, .reduction = Reduction::sum});
    CHECK(verdict_of(l.graph(), "Wr") == Verdict::dense);

    CutGru judge;
    init_all_states(judge, {.dtype = DType::f64});
    set_weights(judge);
    const StateDict full = bptt(judge, steps_of(xs), loss).grads;
    init_all_states(judge, {.dtype = DType::f64});
    set_weights(judge);
    judge.cut = true;
    const StateDict want = bptt(judge, steps_of(xs), loss).grads;
    for (const char* leaf : {"Wz", "Wr", "Wh"}) {
      CHECK(relative_distance(got.grads, want, leaf) < tol::f64_golden);
      CHECK(largest(want, leaf) > 1e-3);
      CHECK(relative_distance(want, full, leaf) > 1e-3);  // the cut can be seen
    }
  }
}

TEST_CASE("without the sensitivity the reset gate has no past") {
  OnlineTrial t = gru_trial(5);
  const StateDict dense = t.online(D_RTRL{});
  t.options.graph.weight_paths = WeightPaths::local;
  const StateDict local = t.online(D_RTRL{});
  CHECK(relative_distance(local, dense, "Wr/weight/weight") > 1e-3);
  CHECK(relative_distance(local, dense, "Wz/weight/weight") < tol::f64);
}

TEST_CASE(
    "dense sensitivities are the same sample by sample, in a batch and over lanes") {
  OnlineTrial t = gru_trial(4, 2);
  const StateDict batch = t.online(D_RTRL{});
  t.options.vmap = true;
  CHECK(relative_distance(t.online(D_RTRL{}), batch) < tol::f64_golden);
}

TEST_CASE("samples that move each other keep their whole sensitivity") {
  struct Centred : Module {
    ParamState first, second;
    HiddenState h;
    bool centres;
    explicit Centred(bool c)
        : first({3, 4}, constant_init(0.1)),
          second({4, 4}, constant_init(0.1)),
          h({4}, constant_init(0.5)),
          centres(c) {
      add("first", first);
      add("second", second);
      add("h", h);
    }
    Value update(Value x) override {
      Value y = matmul(x, first.value());
      if (centres) y = y - mean(y, {.axes = {0}, .keepdims = true});
      h.set(tanh(matmul(tanh(y), second.value()) + 0.9 * h.value()));
      return h.value();
    }
  };
  const Array xs = random_normal(rng_key(1), {5, 3, 3}, DType::f64);
  const Array ys = random_normal(rng_key(2), {5, 3, 4}, DType::f64);
  StateDict last;
  for (const bool centres : {false, true}) {
    CAPTURE(centres);
    const auto set = [](Centred& m) {
      m.first.store(0, random_normal(rng_key(5), {3, 4}, DType::f64));
      m.second.store(0, random_normal(rng_key(6), {4, 4}, DType::f64));
    };
    Centred m(centres), judge(centres);
    Learner l = compile(m, D_RTRL{}, zeros({3, 3}, DType::f64),
                        {.batch_size = 3, .dtype = DType::f64});
    set(m);
    CHECK(verdict_of(l.graph(), "first") == Verdict::dense);
    init_all_states(judge, {.batch_size = 3, .dtype = DType::f64});
    set(judge);
    const StateDict want =
        bptt(judge, steps_of(xs), [&](std::size_t t, const Values& y) {
          return sum(square(y[0] - Value(row(ys, static_cast<std::int64_t>(t)))));
        }).grads;
    for (const std::int64_t window : {1, 2}) {
      l.reset_state(3);
      m.h.store(0, full({3, 4}, 0.5, DType::f64));
      const StateDict got = l.etrace_grad(xs, ys,
                                          [&](const Value& x, const Value& y) {
                                            return sum(square(l(x) - y));
                                          },
                                          {.window = window, .reduction = Reduction::sum})
                                .grads;
      for (const char* leaf : {"first", "second"})
        CHECK(relative_distance(got, want, leaf) < tol::f64_golden);
    }
    if (centres) CHECK(relative_distance(want, last, "first") > 1e-3);
    last = want;
  }
}

namespace {

// Layers in front of leaky units: D is exact, and all layers but the last are dense.
struct Stack : Module {
  std::vector<std::unique_ptr<ParamState>> weights, biases;
  HiddenState h;
  bool centres;
  Stack(std::int64_t layers, bool c) : h({4}, constant_init(0.5)), centres(c) {
    for (std::int64_t k = 0; k < layers; ++k) {
      weights.push_back(std::make_unique<ParamState>(Shape{4, 4}, constant_init(0.1)));
      biases.push_back(std::make_unique<ParamState>(Shape{4}, constant_init(0.1)));
      add("w" + std::to_string(k), *weights.back());
      add("b" + std::to_string(k), *biases.back());
    }
    add("h", h);
  }
  Value update(Value x) override {
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (k > 0) x = tanh(x);
      if (k == 1 && centres) x = x - mean(x, {.axes = {0}, .keepdims = true});
      // The first weight is used twice, so that it has two ways.
      const std::size_t own = k == 2 ? 0 : k;
      x = matmul(x, weights[own]->value(), biases[k]->value());
    }
    h.set(tanh(x + 0.9 * h.value()));
    return h.value();
  }
  void set_weights() {
    std::uint64_t key = 0;
    for (const auto* list : {&weights, &biases})
      for (const auto& p : *list)
        p->store(0,
                 random_normal(fold_in(rng_key(7), ++key), p->spec(0).shape, DType::f64));
  }
};

}  // namespace

TEST_CASE("layers behind each other keep their sensitivities, by one sweep for all") {
  const Array ys = random_normal(rng_key(2), {5, 3, 4}, DType::f64);
  const Array xs = random_normal(rng_key(1), {5, 3, 4}, DType::f64);
  for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(ExactRTRL{})})
    for (const bool centres : {false, true})
      for (const std::int64_t window : {1, 2}) {
        CAPTURE(rule.name);
        CAPTURE(centres);
        CAPTURE(window);
        Stack m(5, centres), judge(5, centres);
        Learner l = compile(m, rule, zeros({3, 4}, DType::f64),
                            {.batch_size = 3, .dtype = DType::f64});
        m.set_weights();
        if (rule.name == "D_RTRL") CHECK(verdict_of(l.graph(), "w1") == Verdict::dense);
        init_all_states(judge, {.batch_size = 3, .dtype = DType::f64});
        judge.set_weights();
        const StateDict want =
            bptt(judge, steps_of(xs), [&](std::size_t t, const Values& y) {
              return sum(square(y[0] - Value(row(ys, static_cast<std::int64_t>(t)))));
            }).grads;
        const StateDict got =
            l.etrace_grad(
                 xs, ys,
                 [&](const Value& x, const Value& y) { return sum(square(l(x) - y)); },
                 {.window = window, .reduction = Reduction::sum})
                .grads;
        CHECK(relative_distance(got, want) < tol::f64_golden);
        CHECK(largest(want, "w0") > 1e-3);
      }
}

TEST_CASE("the program of a stack of layers grows with their number, not its square") {
  auto nodes = [](std::int64_t layers, const Algorithm& rule,
                  std::optional<std::int64_t> batch) {
    Stack m(layers, false);
    Shape x = {4};
    if (batch) x.insert(x.begin(), *batch);
    const Learner l = compile(m, rule, zeros(x), {.batch_size = batch});
    const auto graph = std::make_shared<ETraceGraph>(l.graph());
    const CompiledRule written(graph, rule, LearningOptions{});
    return written.write(RuleMode::evolve).graph.nodes().size();
  };
  for (const Algorithm& rule :
       {Algorithm(D_RTRL{}), Algorithm(UORO{}), Algorithm(ExactRTRL{})})
    for (const std::optional<std::int64_t> batch :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(3)}) {
      CAPTURE(rule.name);
      CAPTURE(batch.value_or(0));
      const std::size_t few = nodes(8, rule, batch), twice = nodes(16, rule, batch),
                        more = nodes(24, rule, batch);
      CHECK(more - twice <= twice - few + 8);
    }
}

TEST_CASE("dense traces go through windows of any length") {
  const D_RTRL rule{.vjp_method = VjpMethod::multi_step};
  const OnlineTrial t = gru_trial(6);
  const StateDict exact = t.bptt();
  CHECK(relative_distance(t.online(rule, 6), exact) < tol::f64_golden);
  // An entry adjoint is uncut where the step's own signal is: the numbers differ a
  // little, and both are far from having no past at all.
  OnlineTrial local = t;
  local.options.graph.weight_paths = WeightPaths::local;
  for (const std::int64_t chunk : {1, 2, 3}) {
    const StateDict got = t.online(rule, chunk), none = local.online(rule, chunk);
    CHECK(relative_distance(got, none, "Wr/weight/weight") > 1e-3);
    CHECK(relative_distance(got, none, "Wh/weight/weight") < tol::f64_golden);
  }
}

TEST_CASE("windows in one program give the numbers of single steps") {
  const auto leak = ETraceConfig::make(
      {.temporal_recursion = TemporalRecursion::scalar_leak, .decay = 0.7});
  const std::vector<Algorithm> rules = {D_RTRL{}, EProp{.kappa_filter_decay = 0.6},
                                        D_RTRL{.config = leak}, OSTLRecurrent{},
                                        SnAp{.n = 2}};
  // Few inputs: traces roll to the end of the window; many: what each step adds is moved
  // there.
  const OnlineTrial wide{.model = wide_gru, .input = {40}, .steps = 7};
  for (OnlineTrial t : {gru_trial(7, 2), wide})
    for (const Algorithm& a : rules) {
      CAPTURE(a.name);
      CAPTURE(to_string(t.input));
      t.window = 1;
      const StateDict want = t.online(a);
      for (const std::int64_t window : {2, 3, 7}) {  // ragged, ragged, whole
        t.window = window;
        CHECK(relative_distance(t.online(a), want) < tol::f64_golden);
      }
    }
}

TEST_CASE("every recursion of the config carries dense traces its own way") {
  const OnlineTrial t = gru_trial(5);
  auto leaky = [&](double decay) {
    const auto config = ETraceConfig::make(
        {.temporal_recursion = TemporalRecursion::scalar_leak, .decay = decay});
    return t.online(D_RTRL{.config = config});
  };
  const auto none = ETraceConfig::make({.temporal_recursion = TemporalRecursion::none});
  const StateDict forgets = t.online(D_RTRL{.config = none});
  OnlineTrial local = t;
  local.options.graph.weight_paths = WeightPaths::local;
  const StateDict newest = local.online(D_RTRL{.config = none});
  CHECK(relative_distance(forgets, newest) < tol::f64_golden);
  CHECK(relative_distance(leaky(0.5), leaky(0.9), "Wr/weight/weight") > 1e-3);
  CHECK(relative_distance(leaky(1e-9), forgets, "Wr/weight/weight") < tol::f64_diff);
}

TEST_CASE("a kappa filter reaches dense traces") {
  const OnlineTrial t = gru_trial(5);
  const StateDict plain = t.online(D_RTRL{}),
                  filtered = t.online(EProp{.kappa_filter_decay = 0.7});
  CHECK(relative_distance(filtered, plain, "Wr/weight/weight") > 1e-3);
  // At the first step there is nothing to filter.
  OnlineTrial one = gru_trial(1);
  CHECK(relative_distance(one.online(EProp{.kappa_filter_decay = 0.7}), one.bptt()) <
        tol::f64_golden);
}

TEST_CASE("the kernel in front of a recurrent layer keeps its sensitivity") {
  const OnlineTrial t{
      .model =
          R"({"kind": "conv_rnn", "size": 4, "channels": 2, "n_rec": 3, "n_out": 2})",
      .input = {1, 4, 4},
      .batch_size = 2};
  const auto m = t.build();
  Learner l = t.learner(*m, SnAp{.n = 2});
  CHECK(verdict_of(l.graph(), "conv/weight") == Verdict::dense);
  const StateDict exact = t.bptt();
  CHECK(relative_distance(t.run(l), exact) < tol::f64_golden);
  CHECK(largest(exact, "conv/weight/weight") > 1e-3);
}

TEST_CASE("a dense trace has the shapes the memory plan announces") {
  const OnlineTrial t = gru_trial(2, 3);
  const auto m = t.build();
  Learner l = t.learner(*m, D_RTRL{});
  std::size_t found = 0;
  for (const TraceView& v : l.get_etrace_of(path_from_slashes("Wr/weight"))) {
    CHECK(v.slot.kind == "dense");
    const Shape want =
        v.slot.key == "Wr/weight/weight" ? Shape{3, 4, 1, 7, 4} : Shape{3, 4, 1, 4};
    CHECK(v.value.shape() == want);
    ++found;
  }
  CHECK(found == 2);
}

TEST_CASE("Hybrid without a leak keeps dense traces, in windows as step by step") {
  StateDict grads[2];
  const Array xs = random_normal(rng_key(2), {6, 3}, DType::f64);
  for (const bool windows : {false, true}) {
    CutGru m;
    Learner l =
        compile(m, Hybrid{.decay_or_rank = 0.0}, row(xs, 0), {.dtype = DType::f64});
    set_weights(m);
    REQUIRE(verdict_of(l.graph(), "Wr") == Verdict::dense);
    grads[windows] =
        l.etrace_grad(xs, xs, [&](const Value& x, const Value&) { return sum(l(x)); },
                      {.window = windows ? 0 : 1})
            .grads;
  }
  for (const auto& [leaf, g] : grads[0])
    check_close(leaf, grads[1].at(leaf), g, tol::f64);
}

}  // namespace dense_rule_test
