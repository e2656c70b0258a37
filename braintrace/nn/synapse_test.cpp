// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/synapse.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/synapse_output.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::synapse_test {
namespace {

using testing::row;

const nlohmann::json& golden() {
  static const nlohmann::json all =
      testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json");
  return all.at("synapses");
}

template <class S>
void replay(const std::string& name) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    S synapse({2});
    init_all_states(synapse, {.dtype = dtype});
    const nlohmann::json& want = golden().at("cases").at(name).at("y");
    for (std::size_t t = 0; t < want.size(); ++t) {
      const Value x = row(golden().at("x")[t], dtype);
      testing::check_close(name, synapse(x).array(), row(want[t], dtype),
                           dtype == DType::f64 ? tol::f64_golden : tol::f32);
    }
  }
}

// A weight whose product goes through a plastic synapse to a leaky sum.
template <class S>
struct Plastic : Module {
  Linear lin{2, 2};
  S syn{{2}};
  HiddenState h{Shape{2}};
  Plastic() { add("lin", lin), add("syn", syn), add("h", h); }
  Value update(Value x) override {
    const Value old = h.value();
    h.set(0.8 * old + syn(sigmoid(lin(x + old))));
    return h.value();
  }
};

template <class S>
std::vector<Path> reached_paths() {
  Plastic<S> m;
  init_all_states(m);
  return compile_etrace_graph(m, {zeros({2})}, compat())
      .hidden_param_op_relations.at(0)
      .connected_hidden_paths;
}

double current_at(const SynapseOutput& out, double g, double V) {
  return out(scalar(g, DType::f64), scalar(V, DType::f64)).I.array().item();
}

}  // namespace

TEST_CASE("synapses follow the recorded runs") {
  replay<Expon>("Expon");
  replay<DualExpon>("DualExpon");
  replay<Alpha>("Alpha");
  replay<STP>("STP");
  replay<STD>("STD");
}

TEST_CASE("a synapse adds delta inputs and direct input, once") {
  Expon s({1}, {.tau = 10});
  init_all_states(s, {.dtype = DType::f64});
  s.add_delta(array({1.0}, DType::f64));
  s.add_delta(array({2.0}, DType::f64));
  CHECK(s(array({4.0}, DType::f64)).array().item() == 7);
  CHECK(s().array().item() == doctest::Approx(7 * std::exp(-0.1)));
}

TEST_CASE("a normalised DualExpon peaks at its amplitude") {
  DualExpon s({1}, {.amplitude = 3, .dt = 0.001});
  init_all_states(s, {.dtype = DType::f64});
  double peak = s(array({1.0}, DType::f64)).array().item();
  for (int t = 0; t < 4000; ++t) peak = std::max(peak, s().array().item());
  CHECK(peak == doctest::Approx(3).epsilon(tol::f32));
}

TEST_CASE("the slope of every output is its derivative in V") {
  const double h = 1e-6, g = 2;
  const SynapseOutput outputs[] = {CUBA(0.5),
                                   COBA(1500),
                                   COBA(-5, {.scale = 1}),
                                   MgBlock(),
                                   MgBlock({.E = 10, .V_offset = 3, .scale = 1}),
                                   MgBlock({.cc_Mg = 0})};
  for (const SynapseOutput& out : outputs) {
    CAPTURE(out.name());
    for (const double V : {-70.0, -20.0, 5.0}) {
      const double want =
          (current_at(out, g, V + h) - current_at(out, g, V - h)) / (2 * h);
      const Tangent slope = out(scalar(g, DType::f64), scalar(V, DType::f64)).slope;
      CHECK((slope ? slope->array().item() : 0) ==
            doctest::Approx(want).epsilon(tol::f64_diff));
    }
  }
}

TEST_CASE("plastic synapses are reached in the reference's order") {
  CHECK(reached_paths<STP>() == std::vector<Path>{{"h"}, {"syn", "u"}, {"syn", "x"}});
  CHECK(reached_paths<STD>() == std::vector<Path>{{"h"}, {"syn", "x"}});
}

TEST_CASE("outputs give mA from mS and mV") {
  CHECK(current_at(CUBA(), 3, -70) == 3);                                // g * 1 V
  CHECK(current_at(COBA(1500), 2, 500) == doctest::Approx(2));           // 2 mS * 1 V
  CHECK(current_at(COBA(5, {.scale = 1}), 2, 4) == doctest::Approx(2));  // 2 S * 1 mV
  const double blocked = 1 + 1.2 / 3.57 * std::exp(0.062 * 60);
  CHECK(current_at(MgBlock(), 2, -60) == doctest::Approx(2e-3 * 60 / blocked));
}

TEST_CASE("synapses refuse bad arguments by name") {
  CHECK_THROWS_WITH_AS(DualExpon({1}, {.tau_decay = 2, .tau_rise = 2}),
                       doctest::Contains("tau_decay and tau_rise must differ"),
                       UserError);
  CHECK_THROWS_WITH_AS(Expon({1}, {.tau = -1}), "Expon: tau must be positive, got -1",
                       UserError);
  CHECK_THROWS_AS(Expon({-1}), UserError);
  CHECK_THROWS_AS(Alpha({1}, {.dt = 0}), UserError);
  CHECK_THROWS_AS(STP({1}, {.U = 0}), UserError);
  CHECK_THROWS_AS(STD({1}, {.tau = 0}), UserError);
  CHECK_THROWS_AS(COBA(std::nan("")), UserError);
  CHECK_THROWS_AS(MgBlock({.beta = 0}), UserError);
}

}  // namespace braintrace::nn::synapse_test
