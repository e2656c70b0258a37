// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/uoro_rule.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/online_trial.h"
#include "braintrace/testing/tolerance.h"

namespace uoro_rule_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

const UORO single{.vjp_method = VjpMethod::single_step};

// A learner whose sequence is run again and again with given signs.
class Replay {
 public:
  Replay(const OnlineTrial& trial, const Algorithm& a)
      : trial_(trial), model_(trial.build()), learner_(trial.learner(*model_, a)) {
    for (const NamedState& s : collect_states(*model_))
      for (std::size_t k = 0; k < s.state->num_leaves(); ++k)
        initial_.push_back({s.state, k, s.state->stored(k)});
    const Graph& program = learner_.graph().module_info.program();
    xs_ = trial.inputs();
    ys_ = trial.targets(program.type(program.outputs()[0]).shape);
  }

  Learner& learner() { return learner_; }
  Type signs() const { return learner_.rule().rule().optional_inputs().at(0).type; }

  // Bit k of `pattern`: the sign of the k-th draw, over all steps.
  StateDict run(std::uint64_t pattern) {
    for (const Initial& i : initial_) i.state->store(i.leaf, i.value);
    learner_.reset_state();
    const Type type = signs();
    StateDict total;
    for (std::int64_t t = 0; t < trial_.steps; ++t) {
      std::vector<double> nu;
      for (std::int64_t k = 0; k < type.size(); ++k)
        nu.push_back((pattern >> (t * type.size() + k) & 1) != 0 ? 1.0 : -1.0);
      learner_.set_rule_input("nu/0", array(type.shape, nu, DType::f64));
      if (!loss_)
        loss_ = std::make_unique<LossHandle>(learner_.trace_loss(
            [&](const Values& in) {
              return LossResult{.loss = sum(square(learner_(in[0]) - in[1])),
                                .results = {}};
            },
            {row(xs_, 0), row(ys_, 0)}));
      add(total, *learner_.step_grad({row(xs_, t), row(ys_, t)}, *loss_).gradients);
    }
    return total;
  }

  // The mean over all signs that matter: those of the last step meet no later signal.
  StateDict mean() {
    const auto bits = static_cast<std::uint64_t>(signs().size() * (trial_.steps - 1));
    StateDict total;
    for (std::uint64_t p = 0; p < (std::uint64_t{1} << bits); ++p) add(total, run(p));
    for (auto& [leaf, g] : total)
      g = (Value(g) / static_cast<double>(std::uint64_t{1} << bits)).array();
    return total;
  }

 private:
  struct Initial {
    State* state;
    std::size_t leaf;
    Array value;
  };
  static void add(StateDict& total, const StateDict& more) {
    for (const auto& [leaf, g] : more) {
      const auto [it, fresh] = total.emplace(leaf, g);
      if (!fresh) it->second = (Value(it->second) + Value(g)).array();
    }
  }

  const OnlineTrial& trial_;
  std::unique_ptr<Module> model_;
  Learner learner_;
  std::vector<Initial> initial_;
  Array xs_, ys_;
  std::unique_ptr<LossHandle> loss_;
};

OnlineTrial rnn(std::int64_t n, std::optional<std::int64_t> batch = {}) {
  return {
      .model = R"({"kind": "tanh_rnn", "n_in": 3, "n_rec": )" + std::to_string(n) + "}",
      .input = {3},
      .batch_size = batch,
      .steps = 3};
}

}  // namespace

TEST_CASE("the mean of UORO over all signs is exact RTRL") {
  const OnlineTrial one = rnn(3), two = rnn(2, 2);
  OnlineTrial shared = two;
  shared.options.learning.uoro_theta = UoroTheta::shared;
  for (const OnlineTrial& t : {one, two, shared}) {
    const StateDict want = t.online(ExactRTRL{});
    Replay replay(t, single);
    CHECK(relative_distance(replay.run(5), want, "w") > 1e-2);  // one draw is not
    CHECK(relative_distance(replay.mean(), want, "w") < tol::f64_golden);
    CHECK(largest(want, "w") > 1e-2);
  }
}

TEST_CASE("the mean of UORO is exact through weights behind weights") {
  const OnlineTrial t{
      .model =
          R"({"kind": "layer", "class": "GRUCell", "args": {"in_size": 2, "out_size": 2}})",
      .input = {2},
      .batch_size = 2,
      .steps = 3};
  const StateDict want = t.bptt();
  CHECK(relative_distance(Replay(t, single).mean(), want) < tol::f64_golden);
  for (const auto& [leaf, g] : want) CHECK(largest(want, leaf) > 1e-3);
}

TEST_CASE("two steps of UORO by hand") {
  // h' = .9 h + x w: J = .9 and p = nu x.
  const OnlineTrial t{.model = R"({"kind": "leaky_linear", "n_in": 1, "n_rec": 2})",
                      .input = {1},
                      .steps = 2};
  Replay replay(t, single);
  const double nu[2][2] = {{1, -1}, {1, 1}};
  replay.run(0b1101);
  const std::vector<double> x = t.inputs().to_doubles();
  const double tiny = 1e-12;
  std::vector<double> s(2, 0), theta(2, 0);
  auto norm = [](const std::vector<double>& v) { return std::hypot(v[0], v[1]); };
  for (std::size_t k = 0; k < 2; ++k) {
    std::vector<double> ds = {0.9 * s[0], 0.9 * s[1]},
                        p = {nu[k][0] * x[k], nu[k][1] * x[k]};
    const double r0 = std::sqrt((norm(theta) + tiny) / (norm(ds) + tiny));
    const double r1 = std::sqrt((norm(p) + tiny) / (std::sqrt(2.0) + tiny));
    for (std::size_t i = 0; i < 2; ++i) {
      s[i] = r0 * ds[i] + r1 * nu[k][i];
      theta[i] = theta[i] / r0 + p[i] / r1;
    }
  }
  int found = 0;
  for (const TraceView& v : replay.learner().etraces()) {
    if (v.slot.kind == "key") continue;
    const std::vector<double>& want = v.slot.kind == "s_tilde" ? s : theta;
    const std::vector<double> got = v.value.to_doubles();
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(got[i] == doctest::Approx(want[i]).epsilon(tol::f64_golden));
    ++found;
  }
  CHECK(found == 2);
}

TEST_CASE("UORO draws its own signs from its key, again after a reset") {
  const OnlineTrial t = rnn(4, 2);
  const auto a = t.build();
  Learner la = t.learner(*a, UORO{});
  const StateDict first = t.run(la);
  CHECK(relative_distance(t.online(UORO{}), first) == 0);
  CHECK(relative_distance(t.online(UORO{.projection_key = 7}), first, "w") > 1e-3);
  auto sign_sum = [&] {
    for (const TraceView& v : la.etraces())
      if (v.slot.kind == "s_tilde") return v.value.to_doubles();
    return std::vector<double>{};
  };
  const std::vector<double> before = sign_sum();
  la.reset_state();
  for (NamedState& s : collect_states(*a))
    if (is_hidden(s.state->kind()))
      s.state->store(0, zeros(s.state->stored().shape(), DType::f64));
  CHECK(relative_distance(t.run(la), first) == 0);
  CHECK(sign_sum() == before);
}

TEST_CASE("samples of a batch have factors of their own, as lanes have") {
  OnlineTrial t = rnn(3, 2);
  const auto m = t.build();
  const Learner l = t.learner(*m, UORO{});
  CHECK(l.get_etrace_of(path_from_slashes("w"))[0].value.shape() == Shape{2, 3, 3});
  t.options.learning.uoro_theta = UoroTheta::shared;
  const auto shared = t.build();
  const Learner ls = t.learner(*shared, UORO{});
  CHECK(ls.get_etrace_of(path_from_slashes("w"))[0].value.shape() == Shape{3, 3});
  t.options.vmap = true;
  const auto lanes = t.build();
  Learner lv = t.learner(*lanes, UORO{});
  t.run(lv);
  for (const TraceView& v : lv.etraces()) {
    if (v.slot.kind != "s_tilde") continue;
    const std::vector<double> s = v.value.to_doubles();
    CHECK(std::vector(s.begin(), s.begin() + 3) != std::vector(s.begin() + 3, s.end()));
  }
}

TEST_CASE("samples that mix share one theta") {
  for (const bool mixed : {false, true}) {
    MicroModel m([&](MicroModel& s, Value x) {
      const Value h = s.h(), y = matmul(concat({x, h}), s.w());
      s.set("h", tanh(mixed ? y - mean(y, {.axes = {0}, .keepdims = true}) : y));
      return s.h();
    });
    m.hidden("h", {2}).param("w", {5, 2});
    const Learner l = compile(m, UORO{}, ones({2, 3}, DType::f64),
                              {.batch_size = 2, .dtype = DType::f64});
    CHECK(l.get_etrace_of(path_from_slashes("w"))[0].value.shape() ==
          (mixed ? Shape{5, 2} : Shape{2, 5, 2}));
  }
}

}  // namespace uoro_rule_test
