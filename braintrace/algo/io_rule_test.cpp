// SPDX-License-Identifier: Apache-2.0
// pp_prop and its relatives against their formulas in plain loops.
#include "braintrace/algo/io_rule.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/online_trial.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace io_rule_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr std::int64_t kSteps = 6, kBatch = 2, kIn = 3, kRec = 4;
constexpr const char* kTwoState =
    R"({"model": {"kind": "two_state", "n_in": 3, "n_rec": 4}})";

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

enum class Side { jacobian, leak };

// v' = .9 v + x w - .1 a, a' = .95 a + v, loss = mean of (v' - y)^2.
struct Plain {
  double a_x = 0.9, a_f = 0.9;
  Side side = Side::jacobian;
  bool published = false;        // the signal meets the whole trace
  bool by_call = false;          // what the bias correction counts
  std::optional<double> m = {};  // a modulator in place of the signal

  std::vector<double> w = numbers({kIn, kRec}, 1).to_doubles();
  std::vector<double> xs = numbers({kSteps, kBatch, kIn}, 2).to_doubles();
  std::vector<double> ys = numbers({kSteps, kBatch, kRec}, 3).to_doubles();
  double v[kBatch][kRec] = {}, a[kBatch][kRec] = {};
  double X[kBatch][kIn] = {}, f[kBatch][kRec][2] = {};
  double grad[kIn][kRec] = {};
  int steps = 0, calls = 0;

  double x(std::int64_t t, std::int64_t b, std::int64_t i) const {
    return xs[static_cast<std::size_t>((t * kBatch + b) * kIn + i)];
  }
  double error(std::int64_t t, std::int64_t b, std::int64_t o) const {
    return 2 * (v[b][o] - ys[static_cast<std::size_t>((t * kBatch + b) * kRec + o)]) /
           (kBatch * kRec);
  }
  double correction(int n) const {
    return a_f > 0 ? std::max(1 - std::pow(a_f, n), 1e-8) : 1;
  }

  void advance(std::int64_t t) {
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t o = 0; o < kRec; ++o) {
        double drive = 0;
        for (std::int64_t i = 0; i < kIn; ++i)
          drive += x(t, b, i) * w[static_cast<std::size_t>(i * kRec + o)];
        const double v0 = v[b][o];
        v[b][o] = 0.9 * v0 + drive - 0.1 * a[b][o];
        a[b][o] = 0.95 * a[b][o] + v0;
      }
  }
  void roll(std::int64_t t) {
    ++steps;
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t i = 0; i < kIn; ++i) X[b][i] = a_x * X[b][i] + x(t, b, i);
      for (auto& [f0, f1] : f[b]) {
        const double d0 = side == Side::jacobian ? 0.9 * f0 - 0.1 * f1 : f0;
        const double d1 = side == Side::jacobian ? f0 + 0.95 * f1 : f1;
        f0 = a_f * d0 + (1 - a_f);
        f1 = a_f * d1;
      }
    }
  }
  void step(std::int64_t t) {
    advance(t);
    roll(t);
    const double c = correction(steps);
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t o = 0; o < kRec; ++o)
        for (std::int64_t i = 0; i < kIn; ++i) {
          const double s = m ? *m : error(t, b, o);
          grad[i][o] += X[b][i] * (f[b][o][0] * s + (m ? f[b][o][1] * s : 0)) / c;
          if (published || m) continue;
          grad[i][o] += x(t, b, i) * s * (1 - (1 - a_f) / c);
        }
  }
  // Exact inside the window; the credit that leaves it meets the traces from before.
  void window(std::int64_t first, std::int64_t length) {
    const double c = correction(by_call ? calls + 1 : steps);
    ++calls;
    std::vector<double> s;
    for (std::int64_t t = first; t < first + length; ++t) {
      advance(t);
      for (std::int64_t b = 0; b < kBatch; ++b)
        for (std::int64_t o = 0; o < kRec; ++o) s.push_back(error(t, b, o));
    }
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t o = 0; o < kRec; ++o) {
        double qv = 0, qa = 0;
        for (std::int64_t k = length; k-- > 0;) {
          qv += s[static_cast<std::size_t>((k * kBatch + b) * kRec + o)];
          for (std::int64_t i = 0; i < kIn; ++i) grad[i][o] += x(first + k, b, i) * qv;
          const double to_v = 0.9 * qv + qa, to_a = -0.1 * qv + 0.95 * qa;
          qv = to_v;
          qa = to_a;
        }
        for (std::int64_t i = 0; i < kIn; ++i)
          grad[i][o] += X[b][i] * (f[b][o][0] * qv + f[b][o][1] * qa) / c;
      }
    for (std::int64_t t = first; t < first + length; ++t) roll(t);
  }

  static Array shaped(const Shape& shape, const double* p) {
    return Array::from(shape, std::vector<double>(p, p + num_elements(shape)));
  }
  Array gradient() const { return shaped({kIn, kRec}, &grad[0][0]); }
  Array x_trace() const { return shaped({kBatch, kIn}, &X[0][0]); }
  Array f_trace() const { return shaped({kBatch, kRec, 2}, &f[0][0][0]); }
};

Plain stepped(Plain p) {
  for (std::int64_t t = 0; t < kSteps; ++t) p.step(t);
  return p;
}
Plain windowed(Plain p, std::int64_t k) {
  for (std::int64_t t = 0; t < kSteps; t += k) p.window(t, k);
  return p;
}

struct Result {
  Array grad;
  std::vector<TraceView> traces;
};

struct How {
  std::int64_t window = 1;
  DType dtype = DType::f64;
  bool compat = false;
  Newest newest = Newest::exact;
  std::optional<double> modulator = {};
  FeedbackMatrices feedback = {};
};

Result learned(const Algorithm& algorithm, const How& how = {}) {
  const auto model = nn::build_model(kTwoState);
  LearnerOptions options;
  if (how.compat) options = compat(options);
  options.batch_size = kBatch;
  options.dtype = how.dtype;
  if (!how.compat) options.learning.newest = how.newest;
  Learner learner = compile(*model, algorithm, numbers({kBatch, kIn}, 4), options);
  load_state_dict(*model, {{"w", numbers({kIn, kRec}, 1).astype(how.dtype)}});
  if (how.modulator) learner.set_modulator(scalar(*how.modulator, how.dtype));
  if (!how.feedback.empty()) learner.set_feedback(how.feedback);
  const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
  const GradResult r =
      learner.etrace_grad(numbers({kSteps, kBatch, kIn}, 2).astype(how.dtype),
                          numbers({kSteps, kBatch, kRec}, 3).astype(how.dtype), loss,
                          {.window = how.window, .reduction = Reduction::sum});
  return {r.grads.at("w"), learner.etraces()};
}

void check_same(const Result& got, const Plain& want, DType dtype = DType::f64) {
  const double tolerance = dtype == DType::f64 ? tol::f64 : tol::f32_grad;
  check_close("gradient", got.grad, want.gradient().astype(dtype), tolerance);
  REQUIRE(got.traces.size() == 2);
  CHECK(got.traces[0].slot.name() == "x/0/-1/x");
  CHECK(got.traces[1].slot.name() == "df/0/0/df");
  check_close("x", got.traces[0].value, want.x_trace().astype(dtype), tolerance);
  check_close("df", got.traces[1].value, want.f_trace().astype(dtype), tolerance);
}

double distance(const Array& a, const Array& b) { return worst_error(a, b).error; }

}  // namespace

TEST_CASE("pp_prop adds to the exact newest step every product with an older factor") {
  const std::pair<double, double> decays[] = {
      {0.9, 0.9}, {0.8, 0.3}, {0.9, 0.0}, {0.0, 0.7}};
  for (const auto& [a_x, a_f] : decays) {
    CAPTURE(a_x);
    CAPTURE(a_f);
    const Algorithm rule = pp_prop{.decay_or_rank = {a_x, a_f}};
    const Plain want = stepped({.a_x = a_x, .a_f = a_f});
    for (std::int64_t window : {1, 4, 6}) {  // 4: the last one is shorter
      CAPTURE(window);
      check_same(learned(rule, {.window = window}), want);
    }
    check_same(learned(rule, {.window = 4, .dtype = DType::f32}), want, DType::f32);
  }
}

TEST_CASE("published pp_prop meets its whole trace") {
  const Plain want = stepped({.published = true});
  const Algorithm rule = pp_prop{.decay_or_rank = 0.9};
  check_same(learned(rule, {.newest = Newest::trace}), want);
  check_same(learned(rule, {.window = 4, .newest = Newest::trace}), want);
  check_same(learned(rule, {.compat = true}), want);
  CHECK(distance(want.gradient(), stepped({}).gradient()) > tol::f64_diff);
}

TEST_CASE("rank 5 is a decay of two thirds") {
  check_same(learned(pp_prop{.decay_or_rank = 5}),
             stepped({.a_x = 2.0 / 3, .a_f = 2.0 / 3}));
}

TEST_CASE("an f side with a plain leak does not read the Jacobian") {
  const ETraceConfig config =
      ETraceConfig::make({.trace_factorization = TraceFactorization::io_factorized,
                          .temporal_recursion = {TemporalRecursion::scalar_leak,
                                                 TemporalRecursion::scalar_leak},
                          .decay = {0.8, 0.6}});
  check_same(learned(config), stepped({.a_x = 0.8, .a_f = 0.6, .side = Side::leak}));
}

TEST_CASE("windows of pp_prop are exact inside and meet the older trace at entry") {
  const Algorithm rule =
      pp_prop{.decay_or_rank = {0.9, 0.8}, .vjp_method = VjpMethod::multi_step};
  for (std::int64_t k : {1, 2, 3, 6}) {
    CAPTURE(k);
    check_same(learned(rule, {.window = k}), windowed({.a_f = 0.8}, k));
    check_same(learned(rule, {.window = k, .compat = true}),
               windowed({.a_f = 0.8, .by_call = true}, k));
  }
  CHECK(distance(windowed({}, 2).gradient(), windowed({.by_call = true}, 2).gradient()) >
        tol::f64_diff);
}

TEST_CASE("a modulator takes the place of the signal in factorised traces") {
  const ETraceConfig config =
      ETraceConfig::make({.trace_factorization = TraceFactorization::io_factorized,
                          .learning_signal = LearningSignal::modulatory,
                          .decay = 0.9});
  check_same(learned(config, {.modulator = 0.7}), stepped({.m = 0.7}));
}

TEST_CASE("random feedback reaches factorised traces") {
  const ETraceConfig config =
      ETraceConfig::make({.trace_factorization = TraceFactorization::io_factorized,
                          .learning_signal = LearningSignal::random_feedback,
                          .decay = 0.9});
  const Algorithm rule = algorithm_from_config(config, {.random_feedback_key = 1});
  const Array b = numbers({kRec, kRec}, 5);
  const Array once = learned(rule, {.feedback = {{0, b}}}).grad;
  const Array twice = learned(rule, {.feedback = {{0, (Value(b) * 2).array()}}}).grad;
  check_close("twice the matrix", twice, (Value(once) * 2).array(), tol::f64);
  CHECK(distance(once, learned(pp_prop{.decay_or_rank = 0.9}).grad) > tol::f64_diff);
}

TEST_CASE("pp_prop is alive and differs from D_RTRL") {
  const Array pp = learned(pp_prop{.decay_or_rank = 0.9}).grad;
  const Array d_rtrl = learned(D_RTRL{}).grad;
  double size = 0;
  for (double g : pp.to_doubles()) size = std::max(size, std::abs(g));
  CHECK(size > 1e-2);
  CHECK(distance(pp, d_rtrl) > tol::f64_diff);
}

TEST_CASE("relations that read one value share its filter") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value gate = sigmoid(matmul(x, s.w("g")));
    const Value drive = matmul(x, s.w("w"));
    s.set("h", 0.5 * s.h() * gate + drive);
    return s.h();
  });
  m.hidden("h", {3}).param("g", {4, 3}).param("w", {4, 3});
  const Learner learner =
      compile(m, pp_prop{.decay_or_rank = 0.9}, ones({4}), {.dtype = DType::f64});
  std::vector<std::string> names;
  for (const TraceView& t : learner.etraces()) names.push_back(t.slot.name());
  CHECK(names == std::vector<std::string>{"x/0/-1/x", "df/0/0/df", "df/1/0/df"});
  CHECK(learner.etraces()[0].slot.readers == Ints{1});
  CHECK(learner.get_etrace_of(path_from_slashes("w")).size() == 2);
}

TEST_CASE("an output of another shape on the positions of its group has both factors") {
  const auto grads = [](const Shape& state, const Algorithm& rule, std::int64_t window) {
    MicroModel m([&](MicroModel& s, Value x) {
      s.set("h", 0.5 * s.h() + tanh(reshape(matmul(x, s.w()), state)));
      return reshape(s.h(), {6});
    });
    m.hidden("h", state).param("w", {4, 6});
    Learner learner = compile(m, rule, zeros({4}), {.seed = 5, .dtype = DType::f64});
    CHECK(learner.graph().verdicts.at(0).verdict == Verdict::direct);
    const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
    return learner
        .etrace_grad(numbers({5, 4}, 1), numbers({5, 6}, 2), loss, {.window = window})
        .grads;
  };
  for (const Algorithm& rule :
       {Algorithm(pp_prop{.decay_or_rank = 0.9}), Algorithm(OSTLFeedforward{}),
        Algorithm(Hybrid{.decay_or_rank = 0.9})})
    for (const Shape& shape : {Shape{2, 3}, Shape{6, 1}, Shape{3, 1, 2}})
      for (const std::int64_t window : {1, 0}) {
        CAPTURE(rule.name);
        CAPTURE(window);
        for (const auto& [leaf, g] : grads({6}, rule, 1))
          check_close(leaf, grads(shape, rule, window).at(leaf), g, tol::f64);
      }
}

namespace {

StateDict hybrid_grads(const char* model_text, const Algorithm& rule, std::int64_t n_in) {
  const auto model = nn::build_model(model_text);
  LearnerOptions options{.batch_size = kBatch, .seed = 5, .dtype = DType::f64};
  Learner learner = compile(*model, rule, numbers({kBatch, n_in}, 4), options);
  const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
  return learner
      .etrace_grad(numbers({kSteps, kBatch, n_in}, 2), numbers({kSteps, kBatch, 4}, 3),
                   loss, {.window = 1, .reduction = Reduction::sum})
      .grads;
}

}  // namespace

TEST_CASE("Hybrid gives every relation the rule that stores less") {
  constexpr const char* mixed =
      R"({"model": {"kind": "elemwise_decay", "n_in": 5, "n_rec": 4}})";
  constexpr const char* thin =
      R"({"model": {"kind": "leaky_linear", "n_in": 1, "n_rec": 4, "leak": 0.9}})";
  constexpr const char* thick =
      R"({"model": {"kind": "leaky_linear", "n_in": 5, "n_rec": 4, "leak": 0.9}})";
  for (const double decay : {0.9, 0.0}) {
    CAPTURE(decay);
    const Algorithm hybrid = Hybrid{.decay_or_rank = decay};
    const Algorithm factors = pp_prop{.decay_or_rank = decay};
    const auto same = [&](const char* what, const StateDict& got, const StateDict& want,
                          const char* leaf) {
      check_close(what, got.at(leaf), want.at(leaf), tol::f64);
    };
    const StateDict both = hybrid_grads(mixed, hybrid, 5);
    same("entry by entry", both, hybrid_grads(mixed, D_RTRL{}, 5), "a");
    same("two factors", both, hybrid_grads(mixed, factors, 5), "w");
    CHECK(distance(both.at("w"), hybrid_grads(mixed, D_RTRL{}, 5).at("w")) >
          tol::f64_diff);
    same("thin", hybrid_grads(thin, hybrid, 1), hybrid_grads(thin, D_RTRL{}, 1), "w");
    same("thick", hybrid_grads(thick, hybrid, 5), hybrid_grads(thick, factors, 5), "w");
  }
}

TEST_CASE("pp_prop filters which rows of a table were read") {
  // Both sides forget at once: what is left is the newest step, exact on one step.
  OnlineTrial t{.model = R"({"model": {"kind": "embed_leaky", "n_vocab": 5, "n_rec": 4,
                             "n_out": 3}})",
                .input = {}};
  const auto run = [&](const Algorithm& a, std::int64_t window) {
    const auto m = t.build();
    Learner l = compile(*m, a, zeros({}, DType::i32), {.seed = 1, .dtype = DType::f64});
    Array indices = zeros({6}, DType::i32);
    for (int i = 0; i < 6; ++i) indices.mutable_data<std::int32_t>()[i] = (3 * i) % 5;
    return l
        .etrace_grad(std::vector{indices},
                     [&](const Values& in) {
                       return LossResult{.loss = sum(square(l(in[0]))), .results = {}};
                     },
                     {.window = window, .reduction = Reduction::sum})
        .grads;
  };
  const Algorithm forgets = pp_prop{.decay_or_rank = DecayOrRank(0.0, 0.0)};
  const auto none = ETraceConfig::make({.temporal_recursion = TemporalRecursion::none});
  const StateDict want = run(D_RTRL{.config = none}, 1);
  CHECK(largest(want, "emb/weight") > 1e-3);
  CHECK(relative_distance(run(forgets, 1), want) < 1e-12);
  const Algorithm keeps = pp_prop{.decay_or_rank = 0.8};
  const StateDict step_by_step = run(keeps, 1);
  CHECK(relative_distance(step_by_step, want, "emb/weight") > 1e-3);
  CHECK(relative_distance(run(keeps, 3), step_by_step) < 1e-12);
}

}  // namespace io_rule_test
