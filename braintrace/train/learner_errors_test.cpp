// SPDX-License-Identifier: Apache-2.0
// Every error a learner and its drivers give, one by one.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace learner_errors_test {

using namespace braintrace;

namespace {

constexpr const char* kLeaky =
    R"({"model": {"kind": "leaky_linear", "n_in": 3, "n_rec": 4, "leak": 0.9}})";

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

struct Setup {
  std::unique_ptr<Module> model;
  Learner learner;
  Array xs = numbers({6, 3}, 2), ys = numbers({6, 4}, 3);

  explicit Setup(const Algorithm& a = D_RTRL{}, LearnerOptions o = {},
                 const char* text = kLeaky)
      : model(nn::build_model(text)), learner(make(*model, a, o)) {}
  static Learner make(Module& m, const Algorithm& a, LearnerOptions o) {
    o.dtype = DType::f64;
    Shape s = {3};
    if (o.batch_size) s.insert(s.begin(), *o.batch_size);
    return compile(m, a, numbers(s, 1), o);
  }
  PairLoss loss() {
    return [this](const Value& x, const Value& y) { return mse(learner(x), y); };
  }
  GradResult grad(const GradOptions& o = {}) {
    return learner.etrace_grad(xs, ys, loss(), o);
  }
};

// The kind and text of the error a call gives.
template <class F>
void refuses(F call, ErrorKind kind, const char* part) {
  CAPTURE(part);
  try {
    call();
    FAIL("nothing was refused");
  } catch (const UserError& e) {
    const std::string text = e.what();
    CAPTURE(text);
    CHECK(e.kind() == kind);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("compile refuses bad arguments") {
  const auto model = nn::build_model(kLeaky);
  const auto with = [&](LearnerOptions o, std::vector<Array> examples) {
    return [&model, o, examples] { Learner(*model, D_RTRL{}, examples, o); };
  };
  refuses(with({}, {}), ErrorKind::value, "at least one example input");
  refuses(with({.verbose = 3}, {zeros({3})}), ErrorKind::value,
          "verbose must be 0, 1 or 2, got 3");
  refuses(with({.threads = -1}, {zeros({3})}), ErrorKind::value,
          "compile: threads must be 0 (as the environment says) to 1024, got -1");
  refuses(with({.threads = 1025}, {zeros({3})}), ErrorKind::value, "got 1025");
  refuses(with({.vmap = true}, {zeros({3})}), ErrorKind::value,
          "vmap needs a batch_size");
  refuses(with({.batch_size = 2, .vmap = true}, {zeros({3})}), ErrorKind::value,
          "vmap over 2 lanes needs examples with that leading axis");
}

TEST_CASE("a model without a trainable op that reaches a state is a compilation error") {
  struct Plain : Module {
    ParamState w{Shape{3, 3}, constant_init(0.1)};
    HiddenState h{Shape{3}};
    Plain() {
      add("w", w);
      add("h", h);
    }
    Value update(Value x) override {
      h.set(0.5 * h.value() + x);
      return dot(h.value(), w.value());
    }
  } model;
  refuses([&] { compile(model, D_RTRL{}, zeros({3})); }, ErrorKind::compilation,
          "found no trainable op that reaches a hidden state");
  compile(model, BPTT{}, zeros({3}));  // needs no trace
}

TEST_CASE("sequences are checked before anything runs") {
  Setup s;
  Learner& l = s.learner;
  const TracedFn fn = [&](const Values& in) {
    return LossResult{.loss = sum(l(in[0])), .results = {}};
  };
  const auto with = [&](std::vector<Array> seq) {
    return [&l, fn, seq] { l.etrace_grad(seq, fn); };
  };
  refuses(with({}), ErrorKind::value, "at least one sequence");
  refuses(with({scalar(1)}), ErrorKind::value, "sequence 0 is a scalar");
  refuses(with({zeros({0, 3})}), ErrorKind::value, "the sequence is empty");
  refuses(with({s.xs, numbers({5, 4}, 1)}), ErrorKind::value,
          "sequences must have one length, got 6 and 5");
  refuses([&] { l.etrace_evolve(std::vector<Array>{}); }, ErrorKind::value,
          "at least one sequence");
  refuses(
      [&] {
        l.etrace_evolve({s.xs, zeros({2, 3})});
      },
      ErrorKind::value, "sequences must have one length");
  CHECK(l.running_index() == 0);
}

TEST_CASE("a source needs a function and a length") {
  Setup s;
  const auto at = [&](std::int64_t t) { return std::vector{row(s.xs, t)}; };
  refuses([&] { s.learner.etrace_evolve(SequenceSource{.length = 3}); }, ErrorKind::value,
          "etrace_evolve: a source needs a function");
  for (const std::int64_t length : {0, -3})
    refuses([&] { s.learner.etrace_evolve(SequenceSource{.length = length, .at = at}); },
            ErrorKind::value, "etrace_evolve: a source needs a length >= 1");
  s.learner.etrace_evolve(SequenceSource{.length = 3, .at = at});
  CHECK(s.learner.running_index() == 3);
}

TEST_CASE("a loss traced before the learner changed is refused") {
  const auto trace = [](Setup& s) {
    return s.learner.trace_loss(
        [&](const Values& in) {
          return LossResult{.loss = mse(s.learner(in[0]), in[1]), .results = {}};
        },
        {row(s.xs, 0), row(s.ys, 0)});
  };
  const auto step = [](Setup& s, LossHandle& h) {
    return [&] { s.learner.step_grad({row(s.xs, 0), row(s.ys, 0)}, h); };
  };
  const char* text = "call trace_loss again";
  Setup random(EProp{.feedback = "random", .random_feedback_key = 1}), dni(DNI{}),
      three(ThreeFactor{});
  dni.learner.set_synthesizer(SyntheticGradient({{0, {4, 1}}}));
  three.learner.set_modulator(scalar(0.5));
  LossHandle a = trace(random), b = trace(dni), c = trace(three);
  step(random, a)();
  random.learner.set_feedback({{0, zeros({4, 4}, DType::f64)}});
  refuses(step(random, a), ErrorKind::runtime, text);
  step(dni, b)();
  dni.learner.set_synthesizer(SyntheticGradient({{0, {4, 1}}}));
  refuses(step(dni, b), ErrorKind::runtime, text);
  three.learner.set_modulator(scalar(0.7));
  step(three, c)();
  three.learner.set_modulator(ones({4}));
  refuses(step(three, c), ErrorKind::runtime, text);
  CHECK(random.learner.running_index() == 1);
  LossHandle again = trace(random);
  step(random, again)();
  CHECK(random.learner.running_index() == 2);
}

TEST_CASE("chunks, masks and windows are checked") {
  Setup single, multi(D_RTRL{.vjp_method = VjpMethod::multi_step}),
      lanes(D_RTRL{.vjp_method = VjpMethod::multi_step}, {.batch_size = 2, .vmap = true});
  refuses([&] { single.grad({.chunk_size = 2}); }, ErrorKind::value,
          "chunk_size 2 needs vjp_method multi-step");
  refuses([&] { multi.grad({.chunk_size = 0}); }, ErrorKind::value,
          "chunk_size must be >= 1, got 0");
  refuses([&] { multi.grad({.chunk_size = 4}); }, ErrorKind::value,
          "chunk_size 4 does not divide the length 6");
  lanes.xs = numbers({6, 2, 3}, 1);
  lanes.ys = numbers({6, 2, 4}, 1);
  refuses([&] { lanes.grad({.chunk_size = 2}); }, ErrorKind::value,
          "windows are not available under vmap");
  refuses([&] { lanes.grad({.window = 2}); }, ErrorKind::value,
          "under vmap: window must be 0 or 1, got 2");
  CHECK(lanes.grad({.window = 0}).steps == 6);
  CHECK(lanes.grad({.window = 1}).steps == 6);
  refuses([&] { lanes.learner(MultiStepData{{lanes.xs}}); }, ErrorKind::value,
          "windows are not available under vmap");
  refuses([&] { single.grad({.mask = ones({5})}); }, ErrorKind::value,
          "mask must have shape (6,)");
  refuses([&] { single.grad({.window = -1}); }, ErrorKind::value, "window must be >= 0");
  refuses([&] { single.grad({.weights = {"nobody"}}); }, ErrorKind::value, "nobody");
}

TEST_CASE("a loss is one float scalar of one update") {
  Setup s;
  const auto with = [&](const PairLoss& f) {
    return [&s, f] { s.learner.etrace_grad(s.xs, s.ys, f); };
  };
  Learner& l = s.learner;
  refuses(with([&](const Value& x, const Value&) { return l(x); }), ErrorKind::value,
          "the loss must be a float scalar");
  refuses(
      with([&](const Value& x, const Value& y) { return mse(l(x), y) + mse(l(x), y); }),
      ErrorKind::value, "called the learner twice");
  refuses(with([](const Value& x, const Value&) { return sum(x); }), ErrorKind::value,
          "exactly once");
  refuses(with([&](const Value& x, const Value& y) {
            return mse(l(MultiStepData{{expand_dims(x, 0)}})[0], y);
          }),
          ErrorKind::not_implemented, "MultiStepData under a gradient");
  refuses(with([&](const Value& x, const Value& y) {
            s.grad();
            return mse(l(x), y);
          }),
          ErrorKind::value, "called inside a loss function");
  CHECK(l.running_index() == 0);
}

TEST_CASE("windows of a learner have one length and a time axis") {
  Setup s;
  refuses([&] { s.learner(MultiStepData{{scalar(1)}}); }, ErrorKind::value,
          "needs a leading time axis");
  refuses(
      [&] {
        s.learner(MultiStepData{{s.xs, zeros({2, 3})}});
      },
      ErrorKind::value, "unequal lengths 6 and 2");
}

TEST_CASE("inputs have the types of the compiled ones") {
  Setup s;
  refuses([&] { s.learner(Value(zeros({4}, DType::f64))); }, ErrorKind::value,
          "input 0 must be f64[3]");
  refuses(
      [&] {
        s.learner(Values{zeros({3}), zeros({3})});
      },
      ErrorKind::value, "compiled with 1 inputs, got 2");
}

TEST_CASE("another batch size without reset_state is refused, and accepted with it") {
  Setup s(D_RTRL{}, {.batch_size = 2});
  s.xs = numbers({6, 5, 3}, 1);
  s.ys = numbers({6, 5, 4}, 1);
  refuses([&] { s.grad(); }, ErrorKind::value, "f64[2,3]");
  s.learner.reset_state(5);
  CHECK(s.grad().grads.at("w").shape() == Shape{3, 4});
  refuses([&] { s.learner.reset_state(0); }, ErrorKind::value,
          "batch_size must be >= 1, got 0");
  Setup one;
  refuses([&] { one.learner.reset_state(7); }, ErrorKind::value,
          "compiled without a batch_size");
}

TEST_CASE("traces are asked for by parameters that have one") {
  Setup s;
  CHECK(s.learner.get_etrace_of(Path{"w"}).size() == 1);
  refuses([&] { s.learner.get_etrace_of(Path{"h"}); }, ErrorKind::value,
          "has no eligibility trace");
  refuses([&] { s.learner.set_etrace("bwg/9/9/w", zeros({1})); }, ErrorKind::value,
          "no trace 'bwg/9/9/w'");
  refuses([&] { s.learner.set_etrace("bwg/0/0/weight", zeros({1})); }, ErrorKind::value,
          "has shape [3,4,1], got [1]");
  refuses([&] { s.learner.set_counters(-1, 0); }, ErrorKind::value,
          "counters must be >= 0");
}

TEST_CASE("a third factor is missing, unwanted or of a wrong shape") {
  Setup three(ThreeFactor{}), plain;
  refuses([&] { three.grad(); }, ErrorKind::runtime, "no modulator was given");
  three.learner.set_modulator(scalar(0.5));
  CHECK(three.grad().grads.contains("w"));
  refuses(
      [&] {
        three.learner.set_modulator(ones({3}));
        three.grad();
      },
      ErrorKind::value, "modulator");
  refuses([&] { plain.learner.set_modulator(scalar(1)); }, ErrorKind::value,
          "has no modulatory signal");
}

TEST_CASE("a predicted future is missing, unwanted or of a wrong shape") {
  Setup dni(DNI{}), plain;
  refuses([&] { dni.grad(); }, ErrorKind::runtime, "no synthetic gradient was given");
  refuses(
      [&] {
        dni.learner.set_synthesizer(SyntheticGradient({{0, {3, 1}}}));
      },
      ErrorKind::value, "group 0 has shape [4,1], got [3,1]");
  refuses(
      [&] {
        dni.learner.set_synthesizer(SyntheticGradient({{1, {4, 1}}}));
      },
      ErrorKind::value, "got no predictor");
  refuses(
      [&] {
        plain.learner.set_synthesizer(SyntheticGradient({{0, {4, 1}}}));
      },
      ErrorKind::value, "predicts no future");
}

TEST_CASE("feedback matrices must be there for every group that has a relation") {
  Setup s(EProp{.feedback = "random", .random_feedback_key = 1});
  s.learner.set_feedback({});
  refuses([&] { s.grad(); }, ErrorKind::runtime, "feedback");
}

TEST_CASE("inputs and matrices that the rule does not have are refused by name") {
  Setup plain, uoro(UORO{}),
      random(EProp{.feedback = "random", .random_feedback_key = 1});
  const Array square = zeros({4, 4}, DType::f64);
  refuses([&] { uoro.learner.set_rule_input("sgin", square); }, ErrorKind::value,
          "set_rule_input: UORO has no input 'sgin'; there are nu/0");
  refuses([&] { plain.learner.set_rule_input("nu/0", square); }, ErrorKind::value,
          "set_rule_input: D_RTRL has no input 'nu/0'; it has none");
  refuses(
      [&] {
        plain.learner.set_feedback({{0, square}});
      },
      ErrorKind::value, "set_feedback: D_RTRL sends its signal through no matrix");
  refuses(
      [&] {
        random.learner.set_feedback({{2, square}});
      },
      ErrorKind::value, "set_feedback: no group 2 takes feedback; there are 0");
}

TEST_CASE("on request, a gradient that is not finite is named and nothing moves") {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    LearnerOptions o;
    o.learning.check_finite = true;
    Setup s(D_RTRL{}, o), silent;
    s.grad();
    const std::vector<double> trace = s.learner.etraces()[0].value.to_doubles();
    Array xs = s.xs.contiguous();
    xs.mutable_data<double>()[4] = bad;
    s.xs = silent.xs = xs;
    refuses([&] { s.grad(); }, ErrorKind::runtime, "the gradient of w holds");
    CHECK(s.learner.etraces()[0].value.to_doubles() == trace);
    CHECK(s.learner.running_index() == 6);
    CHECK(!std::isfinite(silent.grad().grads.at("w").to_doubles()[4]));
  }
}

TEST_CASE("a refused parameter is an error by name, or stays as it is with a record") {
  struct Settling : Module {
    ParamState w{Shape{3, 3}, constant_init(0.2)}, u{Shape{3}, constant_init(0.3)};
    HiddenState h{Shape{3}};
    Settling() {
      add("w", w);
      add("u", u);
      add("h", h);
    }
    Value update(Value x) override {
      const Value rate = u.value();
      const Value settled = while_loop(
          [](const Values& c) { return Values{sum(abs(c[0])) > 1.0}; },
          [&](const Values& c) { return Values{c[0] * 0.5 * tanh(rate)}; }, {x})[0];
      h.set(0.5 * h.value() + matmul(x, w.value()) + settled);
      return h.value() * rate;  // reaches the loss outside of the loop as well
    }
  };
  Settling model;
  refuses([&] { compile(model, D_RTRL{}, zeros({3})); }, ErrorKind::not_implemented, "u");
  for (const Algorithm& a :
       {Algorithm(D_RTRL{}), Algorithm(pp_prop{.decay_or_rank = 0.9})}) {
    LearnerOptions o{.dtype = DType::f64};
    o.graph.on_refused = OnRefused::freeze;
    Learner l = compile(model, a, zeros({3}, DType::f64), o);
    CHECK(!l.graph().explain({.kind = DiagnosticKind::parameter_refused}).empty());
    for (std::int64_t window : {1, 0}) {
      const GradResult r =
          l.etrace_grad(numbers({4, 3}, 1), numbers({4, 3}, 2),
                        [&](const Value& x, const Value& y) { return mse(l(x), y); },
                        {.window = window});
      for (double g : r.grads.at("u").to_doubles()) CHECK(g == 0);
      double live = 0;
      for (double g : r.grads.at("w").to_doubles()) live += std::abs(g);
      CHECK(live > 1e-3);
    }
  }
}

}  // namespace learner_errors_test
