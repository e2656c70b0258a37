// SPDX-License-Identifier: Apache-2.0
// Every neuron against recorded runs, hand-checked steps and central differences.
#include "braintrace/nn/neuron.h"

#include <cmath>
#include <memory>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/etrace/hidden_group.h"
#include "braintrace/ir/builder.h"
#include "braintrace/model/step_model.h"
#include "braintrace/nn/exp_euler.h"
#include "braintrace/nn/exp_if.h"
#include "braintrace/nn/gif.h"
#include "braintrace/nn/hh.h"
#include "braintrace/nn/izhikevich.h"
#include "braintrace/nn/lif.h"
#include "braintrace/nn/qua_if.h"
#include "braintrace/nn/synaptic_lif.h"
#include "braintrace/ops/ops.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/jvp.h"

namespace braintrace::nn::neuron_test {
namespace {

using testing::row;

const nlohmann::json& golden() {
  static const nlohmann::json all =
      testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json");
  return all.at("neurons");
}

// Drives the neuron with the recorded currents; spikes must be equal.
void replay(const std::string& name, Neuron& neuron, DType dtype, double tolerance) {
  CAPTURE(name);
  const nlohmann::json& c = golden().at("cases").at(name);
  const auto scale = c.at("current_scale").get<double>();
  init_all_states(neuron, {.dtype = dtype});
  std::size_t spikes = 0;
  for (std::size_t t = 0; t < c.at("spike").size(); ++t) {
    CAPTURE(t);
    const Value current = scale * Value(row(golden().at("I_mA")[t], dtype));
    const Array spike = neuron(current).array();
    CHECK(spike == row(c.at("spike")[t], dtype));
    spikes += spike.at(0) + spike.at(1) > 0 ? 1 : 0;
    const StateDict now = state_dict(neuron);
    for (const auto& [state, values] : c.at("states")[t].items())
      testing::check_close(name + " " + state, now.at(state), row(values, dtype),
                           tolerance);
  }
  CHECK(spikes > 0);
}

void replay_both(const std::string& name,
                 const std::function<std::unique_ptr<Neuron>()>& make,
                 double tolerance = tol::f64_golden) {
  replay(name, *make(), DType::f64, tolerance);
  replay(name, *make(), DType::f32, tol::f32);
}

template <class N, class O>
auto maker(O options) {
  return [options] { return std::make_unique<N>(Shape{2}, options); };
}

// The step as a function of one current and all hidden states, checked by central
// differences around the present state.
void check_gradient_here(Neuron& neuron, double current) {
  const Array x = full(neuron.size(), current, DType::f64);
  const StepModel step = trace_step(neuron, std::vector<Array>{x});
  std::vector<Array> in = {x};
  for (const Array& a : read_states(step)) in.push_back(a);
  const Graph moved = jvp(step.program);
  std::vector<Array> tangents = in;
  tangents.push_back(testing::uniform(x.shape(), -1, 1, 7));
  for (const StepState& s : step.states)
    for (const ValueId leaf : s.in) {
      const Type& type = step.program.type(leaf);
      tangents.push_back(s.kind == StateKind::hidden
                             ? testing::uniform(type.shape, -1, 1, 8 + leaf.index)
                             : zeros(type.shape, type.dtype));
    }
  const std::vector<Array> got = interpret(moved, tangents);
  const double h = 1e-6;
  const auto shifted_run = [&](double by) {
    std::vector<Array> at;
    for (std::size_t i = 0; i < in.size(); ++i)
      at.push_back((Value(in[i]) + by * Value(tangents[in.size() + i])).array());
    return interpret(step.program, at);
  };
  const auto up = shifted_run(h), down = shifted_run(-h);
  const std::size_t n = up.size();
  bool moves = false;
  for (std::size_t i = 1; i < n; ++i) {  // output 0 is the spike
    const Array want = ((Value(up[i]) - Value(down[i])) / (2 * h)).array();
    testing::check_close("tangent of state " + std::to_string(i), got[n + i], want,
                         tol::f64_diff);
    moves = moves || want.at(0) != 0;
  }
  CHECK(moves);
}

void check_gradient(Neuron& neuron, double current) {
  init_all_states(neuron, {.dtype = DType::f64});
  check_gradient_here(neuron, current);
}

}  // namespace

TEST_CASE("IF and LIF follow the recorded runs") {
  replay_both("IF", maker<IF>(IFOptions{}));
  replay_both("IF_hard", maker<IF>(IFOptions{.spk_reset = "hard"}));
  replay_both("LIF", maker<LIF>(LIFOptions{}));
  replay_both("LIF_hard", maker<LIF>(LIFOptions{.spk_reset = "hard"}));
  replay_both("LIF_het", maker<LIF>(LIFOptions{.tau = {4, 9}}));
}

TEST_CASE("ALIF follows the recorded run") {
  replay_both("ALIF", maker<ALIF>(ALIFOptions{.beta = 0.5}));
}

TEST_CASE("Gif follows the recorded run") {
  replay_both("Gif", maker<Gif>(GifOptions{.A1 = 0.1, .A2 = -0.2}));
}

TEST_CASE("exponential neurons follow the recorded runs") {
  replay_both("ExpIF", maker<ExpIF>(ExpIFOptions{}));
  replay_both("AdExIF", maker<AdExIF>(AdExIFOptions{}));
}

TEST_CASE("CubaLIF follows the recorded run") {
  replay_both("CubaLIF", maker<CubaLIF>(CubaLIFOptions{}));
}

TEST_CASE("a delta input of CubaLIF reaches g first, of LIF reaches V at once") {
  CubaLIF cuba({1});
  LIF lif({1});
  init_all_states(cuba, {.dtype = DType::f64});
  init_all_states(lif, {.dtype = DType::f64});
  cuba.add_delta(array({0.5}, DType::f64));
  lif.add_delta(array({0.5}, DType::f64));
  cuba();
  lif();
  CHECK(cuba.g.stored().item() == 0.5);
  CHECK(cuba.V.stored().item() == doctest::Approx(0.5 * (1 - std::exp(-0.2))));
  CHECK(lif.V.stored().item() == 0.5);
}

TEST_CASE("inputs are used up by one step") {
  LIF lif({1});
  init_all_states(lif, {.dtype = DType::f64});
  lif.add_current(array({0.5}, DType::f64));
  lif.add_delta(array({0.25}, DType::f64));
  lif();
  const double e = std::exp(-0.2), first = 0.5 * (1 - e) + 0.25;
  CHECK(lif.V.stored().item() == doctest::Approx(first));
  lif();
  CHECK(lif.V.stored().item() == doctest::Approx(first * e));
}

TEST_CASE("an input left by a trace that was given up is forgotten") {
  LIF lif({1});
  init_all_states(lif, {.dtype = DType::f64});
  {
    auto b = Builder::create();
    const Value x = b->input({DType::f64, {1}});
    lif.add_delta(x);
    (void)b->finish({{x}});
  }
  lif();
  CHECK(lif.V.stored().item() == 0);
}

TEST_CASE("CobaLIF's conductance pulls V to E and takes part in the linear term") {
  CobaLIF n({1}, {.E = 2, .scale = 1});
  init_all_states(n, {.dtype = DType::f64});
  n.add_delta(array({3.0}, DType::f64));
  n();
  // dV/dt = (-V + 3 (2 - V)) / 5: rate 4/5, fixed point 1.5.
  CHECK(n.V.stored().item() == doctest::Approx(1.5 * (1 - std::exp(-0.8))));
}

TEST_CASE("LIFRef stays at its reset potential for tau_ref after a spike") {
  LIFRef n({1}, {.membrane = {.tau = 1}, .tau_ref = 3});
  init_all_states(n, {.dtype = DType::f64});
  const Value strong = array({100}, DType::f64);
  std::vector<double> spikes;
  for (int t = 0; t < 8; ++t) spikes.push_back(n(strong).array().item());
  // Spike at 0; held at steps 1 and 2 (1 and 2 ms since the spike), free at step 3.
  CHECK(spikes[0] == 1);
  CHECK(n.since_spike.stored().item() < 3);
  CHECK(spikes[3] == 1);
  const double V1 = 100 * (1 - std::exp(-1.0)) - 1;  // above threshold: soft reset
  LIFRef hard({1}, {.membrane = {.tau = 1, .spk_reset = "hard"}, .tau_ref = 3});
  init_all_states(hard, {.dtype = DType::f64});
  hard(strong);
  for (int t = 1; t < 3; ++t) {
    CHECK(hard(strong).array().item() == 0);
    CHECK(hard.V.stored().item() == 0);
  }
  CHECK(hard(strong).array().item() == 1);
  CHECK(V1 > 1);
}

TEST_CASE("QuaIF and AdQuaIF take one hand-checked step") {
  QuaIF q({1}, {.V_init = constant_init(-60)});
  init_all_states(q, {.dtype = DType::f64});
  q(array({5.0}, DType::f64));
  const double f = (0.07 * 5 * -10 + 5) / 10, J = 0.07 * (5 - 10) / 10;
  CHECK(q.V.stored().item() == doctest::Approx(-60 + std::expm1(J) / J * f));

  AdQuaIF a({1}, {.V_init = constant_init(-60), .w_init = constant_init(2)});
  init_all_states(a, {.dtype = DType::f64});
  a(array({5.0}, DType::f64));
  const double V = -60 + std::expm1(J) / J * (f - 0.2);
  CHECK(a.V.stored().item() == doctest::Approx(V));
  const double e = std::exp(-0.1);
  CHECK(a.w.stored().item() == doctest::Approx(2 * e + (V + 65) * (1 - e)));
}

TEST_CASE("Izhikevich's neuron takes one hand-checked step and resets to c") {
  Izhikevich n({1}, {.V_init = constant_init(-60)});
  init_all_states(n, {.dtype = DType::f64});
  n(array({20.0}, DType::f64));
  const double f = 0.04 * 3600 - 300 + 140 + 13 + 2, J = 0.08 * -60 + 5;
  const double V = -60 + std::expm1(J) / J * f;
  CHECK(n.V.stored().item() == doctest::Approx(V));
  const double e = std::exp(-0.02);
  CHECK(n.u.stored().item() == doctest::Approx(-13 * e + 0.2 * V * (1 - e)));

  Izhikevich spiking({1}, {.V_init = constant_init(40)});
  Izhikevich at_c({1}, {.V_init = constant_init(-65), .u_init = constant_init(-5)});
  init_all_states(spiking, {.dtype = DType::f64});
  init_all_states(at_c, {.dtype = DType::f64});
  spiking();
  at_c();
  CHECK(spiking.V.stored().item() == doctest::Approx(at_c.V.stored().item()));
  CHECK(spiking.u.stored().item() == doctest::Approx(at_c.u.stored().item()));
}

TEST_CASE("HH rests without input, fires with it, and reports only the onset") {
  HH rest({1}, {.g_L = 0.3, .dt = 0.1}), fire({1}, {.g_L = 0.3, .dt = 0.01});
  init_all_states(rest, {.dtype = DType::f64});
  init_all_states(fire, {.dtype = DType::f64});
  for (int t = 0; t < 200; ++t) rest();
  CHECK(std::abs(rest.V.stored().item() + 65) < 0.5);
  double onsets = 0, high = 0;
  for (int t = 0; t < 1000; ++t) {  // 10 ms
    onsets += fire(array({20.0}, DType::f64)).array().item();
    high += fire.get_spike().array().item();
  }
  CHECK(onsets == 1);
  CHECK(high > 5);
}

TEST_CASE("HH's rates are finite where the textbook form is 0/0") {
  for (const double V : {-40.0, -55.0}) {
    HH n({1}, {.V_init = V, .dt = 0.01});
    init_all_states(n, {.dtype = DType::f64});
    n();
    for (const auto& [path, a] : state_dict(n)) CHECK(std::isfinite(a.item()));
  }
}

TEST_CASE("HH is one group in the reference's order and form: V, m, h, n") {
  HH n({2});
  init_all_states(n);
  const auto groups = find_hidden_groups_from_module(n, {zeros({2})}, compat());
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].hidden_paths() == std::vector<Path>{{"V"}, {"m"}, {"h"}, {"n"}});
}

TEST_CASE("GIF standardises its potential over the population") {
  GIF n({3}, {.V_init = [](RngKey, const Shape&, DType d) {
          return array({-1, 0, 4}, d);
        }});
  init_all_states(n, {.dtype = DType::f64});
  const Array y = n().array();
  CHECK(y.at(0) + y.at(1) + y.at(2) == doctest::Approx(0).epsilon(tol::f32));
  CHECK(n.V.stored().at(2) == doctest::Approx(3 * std::exp(-1.0 / 20)));
}

TEST_CASE("tangents of one step agree with central differences") {
  // Below threshold the step is smooth; the stand-in slope of the spike is set to zero.
  const Surrogate flat("LeakyRelu", {{"alpha", 0}, {"beta", 0}});
  const auto quiet = constant_init(0.4);
  const LIFOptions membrane{.V_init = quiet, .spk_fun = flat};
  IF leaky({2}, {.V_init = quiet, .spk_fun = flat});
  check_gradient(leaky, 0.3);
  LIF lif({2}, membrane);
  check_gradient(lif, 0.3);
  LIFRef ready({2}, {.membrane = membrane});
  check_gradient(ready, 0.3);
  ALIF alif({2}, {.V_init = quiet, .a_init = constant_init(0.7), .spk_fun = flat});
  check_gradient(alif, 0.3);
  ExpIF expif({2}, {.V_init = constant_init(-58), .spk_fun = flat});
  check_gradient(expif, 3);
  AdExIF adex({2}, {.V_init = constant_init(-58), .w_init = quiet, .spk_fun = flat});
  check_gradient(adex, 3);
  QuaIF qua({2}, {.V_init = constant_init(-55), .spk_fun = flat});
  check_gradient(qua, 3);
  AdQuaIF adqua({2}, {.V_init = constant_init(-55), .w_init = quiet, .spk_fun = flat});
  check_gradient(adqua, 3);
  Izhikevich izhi({2}, {.V_init = constant_init(-60), .spk_fun = flat});
  check_gradient(izhi, 3);
  Gif gif({2}, {.a = 0.05,
                .V_init = constant_init(-60),
                .I1_init = quiet,
                .I2_init = quiet,
                .spk_fun = flat});
  check_gradient(gif, 0.2);
  GIF standardised({2}, {.V_init = quiet, .I2_init = quiet, .spk_fun = flat});
  check_gradient(standardised, 0.2);
  HH hh({2}, {.spk_fun = flat, .dt = 0.05});
  check_gradient(hh, 3);
  CubaLIF cuba({2}, {.membrane = membrane, .g_init = quiet});
  check_gradient(cuba, 0.3);
  CobaLIF coba({2}, {.membrane = membrane, .E = 2, .scale = 1, .g_init = quiet});
  check_gradient(coba, 0.3);
}

TEST_CASE("tangents of a refractory LIFRef agree with central differences") {
  // One neuron of the two is held, the other free.
  LIFRef n({2}, {.membrane = {
                     .V_init = constant_init(0.4),
                     .spk_fun = Surrogate("LeakyRelu", {{"alpha", 0}, {"beta", 0}})}});
  init_all_states(n, {.dtype = DType::f64});
  n.since_spike.set(array({1, 20}, DType::f64));
  check_gradient_here(n, 0.3);
  n(full({2}, 0.3, DType::f64));
  CHECK(n.V.stored().at(0) == 0.4);
  CHECK(n.V.stored().at(1) != 0.4);
}

TEST_CASE("neurons refuse bad arguments by name") {
  CHECK_THROWS_WITH_AS(LIF({2}, {.spk_reset = "softly"}),
                       "LIF: spk_reset must be 'soft' or 'hard', got 'softly'",
                       UserError);
  CHECK_THROWS_WITH_AS(ALIF({2}, {.spk_reset = ""}),
                       "ALIF: spk_reset must be 'soft' or 'hard', got ''", UserError);
  CHECK_THROWS_WITH_AS(LIF({0}), "LIF: every size must be positive, got [0]", UserError);
  CHECK_THROWS_WITH_AS(LIF({2}, {.tau = 0}), "LIF: tau must be positive, got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(LIF({2}, {.tau = {1, 2, 3}}),
                       "LIF: tau must be a number or broadcast to [2], got shape [3]",
                       UserError);
  CHECK_THROWS_WITH_AS(IF({2}, {.V_th = 0}), "IF: V_th - V_reset must be positive, got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(LIF({2}, {.dt = -1}),
                       "LIF: dt must be positive and finite, got -1", UserError);
  CHECK_THROWS_AS(LIFRef({2}, {.tau_ref = -1}), UserError);
  CHECK_THROWS_AS(ExpIF({2}, {.delta_T = 0}), UserError);
  CHECK_THROWS_AS(AdExIF({2}, {.tau_w = -1}), UserError);
  CHECK_THROWS_AS(QuaIF({2}, {.c = std::nan("")}), UserError);
  CHECK_THROWS_AS(AdQuaIF({2}, {.tau_w = 0}), UserError);
  CHECK_THROWS_AS(Izhikevich({2}, {.a = 0}), UserError);
  CHECK_THROWS_AS(Gif({2}, {.k1 = 0}), UserError);
  CHECK_THROWS_AS(GIF({2}, {.tau_I2 = 0}), UserError);
  CHECK_THROWS_AS(HH({2}, {.C = 0}), UserError);
  CHECK_THROWS_AS(CubaLIF({2}, {.tau_syn = 0}), UserError);
  CHECK_THROWS_AS(CobaLIF({2}, {.scale = std::nan("")}), UserError);
}

TEST_CASE("phi is smooth through zero in value and derivative") {
  for (const double z : {-3.0, -0.011, -0.009, -1e-9, 0.0, 1e-4, 0.0101, 2.0}) {
    CAPTURE(z);
    auto b = Builder::create();
    const Value x = b->input({DType::f64, {}});
    const Graph g = b->finish({{phi(x)}});
    const auto out = interpret(
        jvp(g), std::vector<Array>{scalar(z, DType::f64), scalar(1, DType::f64)});
    const double value = z == 0 ? 1 : std::expm1(z) / z;
    const double slope = std::abs(z) < 0.02 ? 0.5 + z / 3 + z * z / 8 + z * z * z / 30 +
                                                  z * z * z * z / 144
                                            : (z * std::exp(z) - std::expm1(z)) / (z * z);
    CHECK(out[0].item() == doctest::Approx(value).epsilon(tol::f64));
    CHECK(out[1].item() == doctest::Approx(slope).epsilon(1e3 * tol::f64));
  }
}

}  // namespace braintrace::nn::neuron_test
