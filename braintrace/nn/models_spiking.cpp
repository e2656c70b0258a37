// SPDX-License-Identifier: Apache-2.0
// Recurrent spiking nets with a leaky readout. Each step reads the spikes of the state
// the previous step left, feeds them back with the input, and reads out the new spikes.
#include "braintrace/nn/gif.h"
#include "braintrace/nn/lif.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/model_spec_impl.h"
#include "braintrace/nn/projection.h"
#include "braintrace/nn/readout.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/nn/synapse.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

LeakyRateReadoutOptions readout(ModelSpec& s) {
  return {.tau = scalar(s.number("tau_out", 5), DType::f64), .dt = s.dt};
}

LIFOptions lif_options(ModelSpec& s) {
  return {.tau = s.number("tau_mem", 5),
          .V_th = s.number("V_th", 1),
          .spk_reset = s.text("spk_reset", "soft"),
          .dt = s.dt};
}

ALIFOptions alif_options(ModelSpec& s) {
  return {.tau = s.number("tau_mem", 5),
          .V_th = s.number("V_th", 1),
          .tau_a = s.number("tau_a", 100),
          .beta = s.number("beta", 0.1),
          .spk_reset = s.text("spk_reset", "soft"),
          .dt = s.dt};
}

ExponOptions expon_options(ModelSpec& s, double tau) {
  return {.tau = s.number("tau_syn", tau), .dt = s.dt};
}

std::unique_ptr<Neuron> make_neuron(ModelSpec& s, bool adaptive) {
  const Shape size = {s.size("n_rec")};
  if (adaptive) return std::make_unique<ALIF>(size, alif_options(s));
  return std::make_unique<LIF>(size, lif_options(s));
}

// How the weighted spikes reach the neuron:
//   expcu      lin -> syn (Expon) -> current
//   delta      syn/comm -> added to V
//   alignpost  syn/comm -> Expon aligned to the neuron -> CUBA
struct LifNet : Module {
  std::string wiring;
  std::unique_ptr<Neuron> neu;
  Linear lin;
  std::unique_ptr<AlignPost> aligned;
  std::unique_ptr<Module> syn;
  LeakyRateReadout out;

  LifNet(ModelSpec& s, bool adaptive)
      : wiring(s.text("wiring", "expcu")),
        neu(make_neuron(s, adaptive)),
        lin(s.size("n_in") + s.size("n_rec"), s.size("n_rec")),
        out(s.size("n_rec"), s.size("n_out"), readout(s)) {
    s.ignore({"p", "wscale"});
    add("neu", *neu);
    add("out", out);
    connect(s);
    add("syn", *syn);
  }

  void connect(ModelSpec& s) {
    const Shape size = {s.size("n_rec")};
    if (wiring == "expcu") {
      add("lin", lin);
      syn = std::make_unique<Expon>(size, expon_options(s, 10));
    } else if (wiring == "delta") {
      s.ignore({"tau_syn"});
      syn = std::make_unique<DeltaProj>(lin, *neu);
    } else if (wiring == "alignpost") {
      aligned = std::make_unique<AlignPost>(
          *neu, std::make_unique<Expon>(size, expon_options(s, 10)), CUBA());
      syn = std::make_unique<AlignPostProj>(lin, *aligned);
    } else {
      throw UserError(s.where() + ": 'wiring' must be expcu, delta or alignpost, got '" +
                      wiring + "'");
    }
  }

  Value update(Value x) override {
    const Value z = concat({x, neu->get_spike()});
    if (wiring == "expcu") return out((*neu)((*syn)(lin(z))));
    (*syn)(z);
    return out((*neu)());
  }
};

// One layer of a SpikingStack: [x, own spikes] -> lin -> syn (Expon) -> neu, spikes out.
struct SpikingLayer : Module {
  Linear lin;
  Expon syn;
  std::unique_ptr<Neuron> neu;

  SpikingLayer(ModelSpec& s, std::int64_t n_in, bool adaptive)
      : lin(n_in + s.size("n_rec"), s.size("n_rec")),
        syn({s.size("n_rec")}, expon_options(s, 10)),
        neu(make_neuron(s, adaptive)) {
    add("lin", lin);
    add("syn", syn);
    add("neu", *neu);
  }

  Value update(Value x) override {
    return (*neu)(syn(lin(concat({x, neu->get_spike()}))));
  }
};

// `layers` of recurrent LIF neurons, each fed with the spikes of the one before; a leaky
// readout of the last.
struct SpikingStack : Module {
  std::vector<std::unique_ptr<SpikingLayer>> layers;
  LeakyRateReadout out;

  SpikingStack(ModelSpec& s, bool adaptive)
      : out(s.size("n_rec"), s.size("n_out"), readout(s)) {
    const std::int64_t count = s.size("layers", 2);
    for (std::int64_t i = 0; i < count; ++i) {
      layers.push_back(std::make_unique<SpikingLayer>(
          s, i == 0 ? s.size("n_in") : s.size("n_rec"), adaptive));
      add("layer" + std::to_string(i + 1), *layers.back());
    }
    add("out", out);
  }

  Value update(Value x) override {
    for (const auto& layer : layers) x = (*layer)(x);
    return out(x);
  }
};

GIFOptions gif_options(ModelSpec& s) {
  return {.tau = s.number("tau", 5),
          .tau_I2 = s.constant("tau_I2_ms"),
          .A2 = s.number("A2", -1),
          .dt = s.dt};
}

// ir2r -> exp -> r (GIF, standardised potential out) -> out
struct GifNet : Module {
  Linear ir2r;
  Expon exp;
  GIF r;
  LeakyRateReadout out;

  explicit GifNet(ModelSpec& s)
      : ir2r(s.size("n_in") + s.size("n_rec"), s.size("n_rec")),
        exp({s.size("n_rec")}, expon_options(s, 5)),
        r({s.size("n_rec")}, gif_options(s)),
        out(s.size("n_rec"), s.size("n_out"), readout(s)) {
    s.ignore({"p", "wscale"});
    add("ir2r", ir2r);
    add("exp", exp);
    add("r", r);
    add("out", out);
  }

  Value update(Value x) override { return out(r(exp(ir2r(concat({x, r.get_spike()}))))); }
};

// Excitatory (the first 80 %) and inhibitory neurons with conductance synapses onto all;
// the input comes as a current.
struct LifCobaEi : Module {
  std::int64_t n_rec, n_exc;
  LIF neu;
  AlignPost in_syn, exc_syn, inh_syn;
  Linear w_in;
  SignedWLinear w_exc, w_inh;
  AlignPostProj inp, exc, inh;
  LeakyRateReadout out;

  explicit LifCobaEi(ModelSpec& s)
      : n_rec(s.size("n_rec")),
        n_exc(count_excitatory(s, n_rec)),
        neu({n_rec}, lif_options(s)),
        in_syn(neu, expon(s), CUBA()),
        exc_syn(neu, expon(s), COBA(1500)),
        inh_syn(neu, expon(s), COBA(-500)),
        w_in(s.size("n_in"), n_rec),
        w_exc(n_exc, n_rec),
        w_inh(n_rec - n_exc, n_rec),
        inp(w_in, in_syn),
        exc(w_exc, exc_syn),
        inh(w_inh, inh_syn),
        out(n_rec, s.size("n_out"), readout(s)) {
    s.ignore({"p", "wscale"});
    add("inp", inp);
    add("exc", exc);
    add("inh", inh);
    add("out", out);
  }

  static std::int64_t count_excitatory(ModelSpec& s, std::int64_t n) {
    const auto n_exc = static_cast<std::int64_t>(0.8 * static_cast<double>(n));
    BT_REQUIRE(n_exc > 0, s.where() + ": 'n_rec' must be at least 2");
    return n_exc;
  }
  std::unique_ptr<Synapse> expon(ModelSpec& s) const {
    return std::make_unique<Expon>(Shape{n_rec}, expon_options(s, 10));
  }

  Value update(Value x) override {
    const Value spikes = neu.get_spike();
    inp(x);
    exc(slice_axis(spikes, -1, 0, n_exc));
    inh(slice_axis(spikes, -1, n_exc, n_rec - n_exc));
    return out(neu());
  }
};

}  // namespace

std::vector<ModelKind> spiking_kinds() {
  return {{"lif_net", make<LifNet, false>},
          {"alif_net", make<LifNet, true>},
          {"lif_stack", make<SpikingStack, false>},
          {"alif_stack", make<SpikingStack, true>},
          {"gif_net", make<GifNet>},
          {"lif_coba_ei", make<LifCobaEi>}};
}

}  // namespace braintrace::nn::internal
