// SPDX-License-Identifier: Apache-2.0
// Recurrent spiking layers against recorded runs: spikes, final states, gradients.
#include "braintrace/nn/projection.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/nn/lif.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::projection_test {
namespace {

using nlohmann::json;

const json& golden(const std::string& name) {
  static const json all = testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json");
  return all.at("snn_layers").at(name);
}

Array tensor(const json& j, DType dtype) {
  if (!j[0].is_array()) {
    const auto row = j.get<std::vector<double>>();
    return array({static_cast<std::int64_t>(row.size())}, row, dtype);
  }
  std::vector<double> values;
  for (const json& row : j)
    for (const json& v : row) values.push_back(v.get<double>());
  const auto n = static_cast<std::int64_t>(j.size());
  return array({n, static_cast<std::int64_t>(values.size()) / n}, values, dtype);
}

// Recorded names join with dots and spell a shared synapse as its two descriptions.
std::string path_of(std::string name) {
  const auto from = name.find("(<class"), to = name.rfind(").syn");
  if (from != std::string::npos) {
    const std::string text = name.substr(from, to - from);
    const auto e = text.find("'E': '");
    const std::string output =
        text.find("CUBA") != std::string::npos
            ? "CUBA"
            : "COBA_E=" + text.substr(e + 6, text.find(' ', e + 6) - e - 6) + "V";
    name = name.substr(0, from) + "AlignPost[Expon," + output + "]" + name.substr(to + 1);
  }
  std::string path;
  bool inside = false;
  for (const char c : name) {
    inside = c == '[' || (inside && c != ']');
    path += c == '.' && !inside ? '/' : c;
  }
  return path;
}

// {"syn.weight": {"weight": .., "bias": ..}} or {"syn.weight": ..} as leaves by path.
StateDict leaves(const json& j, DType dtype) {
  StateDict out;
  for (const auto& [name, value] : j.items()) {
    if (!value.is_object()) {
      out[path_of(name)] = tensor(value, dtype);
      continue;
    }
    for (const auto& [leaf, v] : value.items())
      out[path_of(name) + "/" + leaf] = tensor(v, dtype);
  }
  return out;
}

void replay(const std::string& name, Module& layer, DType dtype) {
  CAPTURE(name);
  const json& c = golden(name);
  const double tolerance = dtype == DType::f64 ? tol::f64_golden : tol::f32;
  init_all_states(layer, {.dtype = dtype});
  load_state_dict(layer, leaves(c.at("params"), dtype));
  const Array xs = tensor(c.at("x"), dtype),
              cotangents = tensor(c.at("cotangent"), dtype);
  const auto weights = testing::steps_of(cotangents);
  const auto loss = [&](std::size_t t, const Values& y) {
    return sum(y[0] * weights[t][0]);
  };
  const testing::BpttResult r = testing::bptt(layer, testing::steps_of(xs), loss);
  const auto spikes = testing::steps_of(tensor(c.at("spikes"), dtype));
  for (std::size_t t = 0; t < spikes.size(); ++t) CHECK(r.outputs[t][0] == spikes[t][0]);
  for (const auto& [path, want] : leaves(c.at("final_hidden"), dtype)) {
    REQUIRE_MESSAGE(r.states.back().contains(path), path);
    testing::check_close(name + " " + path, r.states.back().at(path), want, tolerance);
  }
  for (const auto& [path, want] : leaves(c.at("bptt_grad"), dtype)) {
    REQUIRE_MESSAGE(r.grads.contains(path), path);
    testing::check_close(name + " gradient of " + path, r.grads.at(path), want,
                         tolerance);
  }
}

template <class Layer>
void replay_both(const std::string& name) {
  Layer in_f64, in_f32;
  replay(name, in_f64, DType::f64);
  replay(name, in_f32, DType::f32);
}

constexpr std::int64_t n_in = 3, n_rec = 5;
const Shape size = {n_rec};

struct IfDelta : Module {
  IF neu{size};
  Linear syn{n_in + n_rec, n_rec};
  IfDelta() {
    add("neu", neu);
    add("syn", syn);
  }
  Value update(Value x) override { return neu(syn(concat({x, neu.get_spike()}))); }
};

struct AlifDelta : Module {
  ALIF neu{size};
  Linear comm{n_in + n_rec, n_rec};
  DeltaProj syn{comm, neu};
  AlifDelta() {
    add("neu", neu);
    add("syn", syn);
  }
  Value update(Value x) override {
    syn(concat({x, neu.get_spike()}));
    return neu();
  }
};

struct NoPlasticity : Module {
  Value update(Value x) override { return x; }
};
struct Depression : STD {
  Depression() : STD(size, {.U = 0.1, .tau = 500}) {}
};
struct Facilitation : STP {
  Facilitation() : STP(size, {.tau_f = 500, .tau_d = 100}) {}
};

template <class Neu, class Plasticity>
struct ExpCu : Module {
  Neu neu{size};
  AlignPost g{neu, std::make_unique<Expon>(size, ExponOptions{.tau = 10}), CUBA()};
  Linear comm{n_in + n_rec, n_rec};
  AlignPostProj syn{comm, g};
  Plasticity plasticity;
  ExpCu() {
    add("neu", neu);
    add("syn", syn);
    add(std::is_same_v<Plasticity, Facilitation> ? "stp" : "std", plasticity);
  }
  Value update(Value x) override {
    syn(concat({x, plasticity(neu.get_spike())}));
    return neu();
  }
};

struct ExpCo : Module {
  static std::unique_ptr<Synapse> expon() {
    return std::make_unique<Expon>(size, ExponOptions{.tau = 10});
  }
  LIF neu{size};
  AlignPost g_in{neu, expon(), CUBA()}, g_e{neu, expon(), COBA(1500)},
      g_i{neu, expon(), COBA(-500)};
  Linear w_in{n_in, n_rec};
  SignedWLinear w_e{4, n_rec}, w_i{1, n_rec};
  AlignPostProj inp{w_in, g_in}, exe{w_e, g_e}, inh{w_i, g_i};
  ExpCo() {
    add("inp_syn", inp);
    add("exe_syn", exe);
    add("inh_syn", inh);
    add("neu", neu);
  }
  Value update(Value x) override {
    const Value s = neu.get_spike();
    inp(x);
    exe(slice_axis(s, -1, 0, 4));
    inh(slice_axis(s, -1, 4, 1));
    return neu();
  }
};

}  // namespace

TEST_CASE("delta layers follow the recorded runs") {
  replay_both<IfDelta>("IF_Delta_Dense_Layer");
  replay_both<AlifDelta>("ALIF_Delta_Dense_Layer");
}

TEST_CASE("exponential current layers follow the recorded runs") {
  replay_both<ExpCu<LIF, NoPlasticity>>("LIF_ExpCu_Dense_Layer");
  replay_both<ExpCu<ALIF, NoPlasticity>>("ALIF_ExpCu_Dense_Layer");
}

TEST_CASE("layers with short-term plasticity follow the recorded runs") {
  replay_both<ExpCu<LIF, Depression>>("LIF_STDExpCu_Dense_Layer");
  replay_both<ExpCu<LIF, Facilitation>>("LIF_STPExpCu_Dense_Layer");
}

TEST_CASE("the conductance layer follows the recorded run") {
  replay_both<ExpCo>("LIF_ExpCo_Dense_Layer");
}

TEST_CASE("two projections share one synapse") {
  LIF neu({1});
  AlignPost syn(neu, std::make_unique<Expon>(Shape{1}), CUBA());
  Linear a(1, 1, {.w_init = init::constant(2), .b_init = {}});
  Linear b(1, 1, {.w_init = init::constant(3), .b_init = {}});
  AlignPostProj pa(a, syn), pb(b, syn);
  for (Module* m : std::initializer_list<Module*>{&pa, &pb})
    init_all_states(*m, {.dtype = DType::f64});
  pa(array({1.0}, DType::f64));
  pb(array({1.0}, DType::f64));
  neu();
  CHECK(syn.synapse().value().array().item() == 5);
}

TEST_CASE("a current projection lasts one step and takes part in the linear term") {
  LIF neu({1});
  Linear comm(1, 1, {.w_init = init::constant(3), .b_init = {}});
  CurrentProj proj(comm, COBA(2, {.scale = 1}), neu);
  init_all_states(proj, {.dtype = DType::f64});
  proj(array({1.0}, DType::f64));
  neu();
  const double first = 1.5 * (1 - std::exp(-0.8));  // rate (1 + 3) / 5, fixed point 6 / 4
  CHECK(neu.V.stored().item() == doctest::Approx(first));
  neu();
  const double spiked = first >= 1 ? first - 1 : first;
  CHECK(neu.V.stored().item() == doctest::Approx(spiked * std::exp(-0.2)));
}

TEST_CASE("a second synapse of the same kind needs a label") {
  LIF neu({1});
  const auto expon = [] { return std::make_unique<Expon>(Shape{1}); };
  AlignPost first(neu, expon(), CUBA());
  CHECK_THROWS_WITH_AS(
      AlignPost(neu, expon(), CUBA()),
      doctest::Contains("a current source called 'AlignPost[Expon,CUBA]' "
                        "exists already"),
      UserError);
  AlignPost slow(neu, expon(), CUBA(), "slow");
  init_all_states(neu);
  CHECK(state_dict(neu).contains("_before_updates/slow/syn/g"));
  CHECK_THROWS_AS(AlignPost(neu, nullptr, CUBA(), "none"), UserError);
}

}  // namespace braintrace::nn::projection_test
