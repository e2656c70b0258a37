// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/vjp_executor.h"

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/close.h"
#include "braintrace/train/learner.h"

namespace vjp_executor_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr const char* kChain =
    R"({"model": {"kind": "two_state_chain", "n_in": 3, "n_rec": 4}})";
constexpr const char* kTanh = R"({"model": {"kind": "tanh_rnn", "n_in": 3, "n_rec": 4}})";
constexpr double kStep = 1e-6, kFd = 1e-7;

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

// A model with random states, and its executor.
struct Bench {
  std::unique_ptr<Module> model;
  std::unique_ptr<ETraceVjpGraphExecutor> executor;
  explicit Bench(const char* text, VjpExecutorOptions options = {})
      : model(nn::build_model(text)) {
    init_all_states(*model, {.seed = 3, .dtype = DType::f64});
    StateDict all = state_dict(*model);
    std::uint64_t key = 50;
    for (auto& [path, a] : all) a = (Value(numbers(a.shape(), key++)) * 0.4).array();
    load_state_dict(*model, all);
    executor = std::make_unique<ETraceVjpGraphExecutor>(*model, options);
  }
  // The same run with one entry of one state moved.
  StepSolution moved(const std::string& path, std::size_t entry, double by,
                     const std::vector<StepArgument>& args) {
    const StateDict all = state_dict(*model);
    StateDict other = all;
    Array a = all.at(path).astype(DType::f64).contiguous();
    a.mutable_data<double>()[entry] += by;
    other[path] = a;
    load_state_dict(*model, other);
    StepSolution s = executor->solve_h2w_h2h_jacobian(args);
    load_state_dict(*model, all);
    return s;
  }
  // d hidden / d entry by central differences.
  std::vector<double> slope(const std::string& path, std::size_t entry,
                            const Path& hidden, const std::vector<StepArgument>& args) {
    const auto up = moved(path, entry, kStep, args).hidden_vals.at(hidden).to_doubles();
    const auto down =
        moved(path, entry, -kStep, args).hidden_vals.at(hidden).to_doubles();
    std::vector<double> out;
    for (std::size_t i = 0; i < up.size(); ++i)
      out.push_back((up[i] - down[i]) / (2 * kStep));
    return out;
  }
};

double at(const Array& a, std::initializer_list<std::int64_t> index) {
  std::int64_t flat = 0;
  std::size_t k = 0;
  for (std::int64_t i : index) flat = flat * a.shape()[k++] + i;
  return a.to_doubles()[static_cast<std::size_t>(flat)];
}

}  // namespace

TEST_CASE("D and df of a step are the slopes of its hidden states") {
  Bench b(kChain);
  const std::vector<StepArgument> args = {numbers({3}, 1)};
  const StepSolution s = b.executor->solve_h2w_h2h_jacobian(args);
  REQUIRE(s.jacobians.D.size() == 1);
  const Array& d = s.jacobians.D[0];
  const Array& df = s.jacobians.df.at({0, 0});
  CHECK(d.shape() == Shape{4, 2, 2});
  CHECK(df.shape() == Shape{4, 2});
  CHECK(s.jacobians.x.at(0).shape() == Shape{3});
  CHECK(s.final_etrace.empty());
  CHECK(!s.residual);
  const std::vector<Path> names = b.executor->graph().hidden_groups[0].hidden_paths();
  double live = 0;
  for (std::int64_t from = 0; from < 2; ++from)
    for (std::int64_t p = 0; p < 4; ++p)
      for (std::int64_t to = 0; to < 2; ++to) {
        const auto slope = b.slope(to_slashes(names[static_cast<std::size_t>(from)]),
                                   static_cast<std::size_t>(p),
                                   names[static_cast<std::size_t>(to)], args);
        CHECK(at(d, {p, to, from}) ==
              doctest::Approx(slope[static_cast<std::size_t>(p)]).epsilon(kFd));
        live += std::abs(at(d, {p, to, from}));
      }
  CHECK(live > 0.1);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t o = 0; o < 4; ++o)
      for (std::int64_t a = 0; a < 2; ++a) {
        const auto slope = b.slope("w", static_cast<std::size_t>(i * 4 + o),
                                   names[static_cast<std::size_t>(a)], args);
        CHECK(at(s.jacobians.x.at(0), {i}) * at(df, {o, a}) ==
              doctest::Approx(slope[static_cast<std::size_t>(o)]).epsilon(kFd));
      }
}

TEST_CASE("recurrent mixing enters D when asked for, block by block or in full") {
  const std::vector<StepArgument> args = {numbers({3}, 1)};
  Bench diagonal(kTanh), coupled(kTanh, {.include_recurrent_mixing = true}),
      snap(kTanh, {.include_recurrent_mixing = true, .sparse_n = 2}),
      full(kTanh, {.include_recurrent_mixing = true, .full_jacobian = true});
  const auto D = [&](Bench& b) {
    return b.executor->solve_h2w_h2h_jacobian(args).jacobians.D[0];
  };
  CHECK(D(diagonal).shape() == Shape{4, 1, 1});
  for (double v : D(diagonal).to_doubles()) CHECK(v == 0);
  const Array block = D(coupled), all = D(full), wide = D(snap);
  CHECK(block.shape() == Shape{4, 1, 1});
  CHECK(all.shape() == Shape{4, 1, 4, 1});
  CHECK(wide.shape() == Shape{4, 4, 4});  // every position reaches every other
  for (std::int64_t q = 0; q < 4; ++q) {
    const auto slope = full.slope("h", static_cast<std::size_t>(q), Path{"h"}, args);
    for (std::int64_t p = 0; p < 4; ++p)
      CHECK(at(all, {p, 0, q, 0}) ==
            doctest::Approx(slope[static_cast<std::size_t>(p)]).epsilon(kFd));
    CHECK(at(block, {q, 0, 0}) == doctest::Approx(at(all, {q, 0, q, 0})));
  }
  CHECK(std::abs(at(block, {0, 0, 0})) > 1e-3);
}

TEST_CASE("several steps: Jacobians have time in front, states are those of the end") {
  Bench b(kChain);
  const Array xs = numbers({5, 3}, 2);
  const StepSolution all = b.executor->solve_h2w_h2h_jacobian({MultiStepData{{xs}}});
  CHECK(all.jacobians.D[0].shape() == Shape{5, 4, 2, 2});
  CHECK(all.jacobians.df.at({0, 0}).shape() == Shape{5, 4, 2});
  CHECK(all.out[0].shape() == Shape{5, 4});
  StepSolution one;
  for (std::int64_t t = 0; t < 5; ++t) {
    one = b.executor->solve_h2w_h2h_jacobian({SingleStepData{{row(xs, t)}}});
    check_close("D", row(all.jacobians.D[0], t), one.jacobians.D[0], 1e-12);
    check_close("x", row(all.jacobians.x.at(0), t), row(xs, t), 0);
    StateDict next = state_dict(*b.model);
    for (const auto& [path, v] : one.hidden_vals) next[to_slashes(path)] = v;
    load_state_dict(*b.model, next);
  }
  check_close("V", all.hidden_vals.at(Path{"V"}), one.hidden_vals.at(Path{"V"}), 1e-12);
}

TEST_CASE("a stepper rolls the trace of D_RTRL and takes the Jacobians") {
  Bench b(kChain);
  const Array xs = numbers({5, 3}, 2);
  Learner learner = compile(*b.model, D_RTRL{}, row(xs, 0), {.seed = 3});
  const StateDict start = state_dict(*b.model);
  const TraceStepper roll = [](const std::vector<Array>& eps, const StepJacobians& j) {
    const Value d = j.D[0], df = j.df.at({0, 0}), x = j.x.at(0);
    const Value instant =
        expand_dims(expand_dims(x, -1), -1) * expand_dims(df, 0);  // [i, o, a]
    const Value e = eps[0];
    const Value kept = sum(expand_dims(d, 0) * expand_dims(e, 2), {.axes = {-1}});
    return std::vector{(kept + instant).array()};
  };
  const StepSolution s = b.executor->solve_h2w_h2h_jacobian(
      {MultiStepData{{xs}}}, roll, {zeros({3, 4, 2}, DType::f64)});
  CHECK(s.jacobians.D.empty());
  CHECK(s.jacobians.df.empty());
  REQUIRE(s.final_etrace.size() == 1);
  load_state_dict(*b.model, start);
  learner.etrace_evolve({xs});
  check_close("trace", s.final_etrace[0], learner.etraces()[0].value, 1e-12);
  CHECK(std::abs(at(s.final_etrace[0], {1, 2, 0})) > 1e-4);
}

TEST_CASE("single-step: the residual gives the adjoint of every hidden state at exit") {
  Bench b(kChain);
  const std::vector<StepArgument> args = {numbers({3}, 1)};
  const StepSolution s = b.executor->solve_h2w_h2h_l2h_jacobian(args);
  const StepAdjoints a = s.residual({.out = {ones({4}, DType::f64)}});
  CHECK(a.params.empty());
  // out = V + 2 a and a reads the new V: a' = .3 a + .7 V^2.
  const auto v = s.hidden_vals.at(Path{"V"}).to_doubles();
  for (std::size_t p = 0; p < 4; ++p) {
    CHECK(a.perturb.at(Path{"a"}).to_doubles()[p] == doctest::Approx(2));
    CHECK(a.perturb.at(Path{"V"}).to_doubles()[p] == doctest::Approx(1 + 2 * 1.4 * v[p]));
  }
  const StepAdjoints none = s.residual({});
  for (double g : none.hidden.at(Path{"V"}).to_doubles()) CHECK(g == 0);
}

TEST_CASE("multi-step: the residual is back-propagation through the window") {
  Bench b(kTanh, {.vjp_method = VjpMethod::multi_step});
  const Array xs = numbers({4, 3}, 2), weights = numbers({4, 4}, 3);
  const StepSolution s = b.executor->solve_h2w_h2h_l2h_jacobian({MultiStepData{{xs}}});
  const StepAdjoints a = s.residual({.out = {weights}});
  CHECK(a.perturb.empty());
  const BpttResult want =
      bptt(*b.model, steps_of(xs), [&](std::size_t t, const Values& y) {
        return sum(y[0] * Value(row(weights, static_cast<std::int64_t>(t))));
      });
  for (const auto& [leaf, g] : want.grads) check_close(leaf, a.params.at(leaf), g, 1e-10);
  CHECK(a.args[0]->shape() == Shape{4, 3});
  // The cotangent of the states at exit: slopes of one of them.
  const StepAdjoints exit =
      s.residual({.hidden = {{Path{"h"}, array({4}, {0, 1, 0, 0}, DType::f64)}}});
  for (std::size_t q = 0; q < 4; ++q) {
    const auto slope = b.slope("h", q, Path{"h"}, {MultiStepData{{xs}}});
    CHECK(exit.hidden.at(Path{"h"}).to_doubles()[q] ==
          doctest::Approx(slope[1]).epsilon(kFd));
  }
}

TEST_CASE("an argument of one step is fed again at every step of the others") {
  struct TwoInputs : Module {
    ParamState w{Shape{3, 3}, constant_init(0.3)};
    HiddenState h{Shape{3}};
    TwoInputs() {
      add("w", w);
      add("h", h);
    }
    Values update_all(const Values& in) override {
      h.set(0.5 * h.value() + matmul(in[0], w.value()) + in[1]);
      return {h.value()};
    }
  };
  TwoInputs model;
  init_all_states(model, {.seed = 1, .dtype = DType::f64});
  ETraceVjpGraphExecutor e(model, {.vjp_method = VjpMethod::multi_step});
  const Array xs = numbers({4, 3}, 2), bias = numbers({3}, 3);
  const StepSolution s = e.solve_h2w_h2h_l2h_jacobian({MultiStepData{{xs}}, bias});
  Array h = zeros({3}, DType::f64);
  const Value w = state_dict(model).at("w");
  for (std::int64_t t = 0; t < 4; ++t)
    h = (0.5 * Value(h) + dot(row(xs, t), w) + Value(bias)).array();
  check_close("h", s.hidden_vals.at(Path{"h"}), h, 1e-12);
  const StepAdjoints a = s.residual({.hidden = {{Path{"h"}, ones({3}, DType::f64)}}});
  for (double g : a.args[1]->to_doubles()) CHECK(g == doctest::Approx(1.875));
}

TEST_CASE("executors refuse what they cannot mean") {
  Bench b(kChain);
  const Array xs = numbers({4, 3}, 2);
  CHECK_THROWS_WITH_AS(b.executor->solve_h2w_h2h_l2h_jacobian({MultiStepData{{xs}}}),
                       doctest::Contains("needs vjp_method multi-step"), UserError);
  const TraceStepper keep = [](const std::vector<Array>& e, const StepJacobians&) {
    return e;
  };
  CHECK_THROWS_WITH_AS(b.executor->solve_h2w_h2h_jacobian({row(xs, 0)}, keep),
                       doctest::Contains("a stepper needs MultiStepData"), UserError);
  CHECK_THROWS_WITH_AS(b.executor->solve_h2w_h2h_jacobian(
                           {MultiStepData{{xs}}, MultiStepData{{numbers({5, 3}, 1)}}}),
                       doctest::Contains("unequal lengths 4 and 5"), UserError);
  CHECK_THROWS_WITH_AS(StepArgument(MultiStepData{{scalar(1)}}),
                       doctest::Contains("a leading time axis is needed"), UserError);
  CHECK_THROWS_WITH_AS(ETraceVjpGraphExecutor(*b.model, {.sparse_n = 2}),
                       doctest::Contains("sparse_n needs include_recurrent_mixing"),
                       UserError);
  CHECK_THROWS_WITH_AS(ETraceVjpGraphExecutor(*b.model, {.full_jacobian = true}),
                       doctest::Contains("full_jacobian needs"), UserError);
  const StepSolution s = b.executor->solve_h2w_h2h_l2h_jacobian({row(xs, 0)});
  CHECK_THROWS_WITH_AS(s.residual({.out = {ones({2}, DType::f64)}}),
                       doctest::Contains("must have the shape"), UserError);
}

TEST_CASE("the sub-steps of an opened loop follow one another in its Jacobians") {
  constexpr const char* kLoop = R"({"model": {"kind": "scan_leaky", "n_in": 3, "n_rec": 4,
      "loops": 20, "decay": 0.9}})";
  Bench b(kLoop);
  const StepSolution s = b.executor->solve_h2w_h2h_jacobian({numbers({3}, 1)});
  CHECK(s.jacobians.df.begin()->second.shape() == Shape{20, 4, 1});
  CHECK(s.jacobians.D[0].shape() == Shape{20, 4, 1, 1});
  for (double d : s.jacobians.D[0].to_doubles()) CHECK(d == doctest::Approx(0.9));
}

}  // namespace vjp_executor_test
