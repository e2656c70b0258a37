// SPDX-License-Identifier: Apache-2.0
// Spiking neurons. Every option is a keyword; numbers may be one per unit.
#include "layers.h"

#include "braintrace/nn/exp_if.h"
#include "braintrace/nn/gif.h"
#include "braintrace/nn/hh.h"
#include "braintrace/nn/izhikevich.h"
#include "braintrace/nn/lif.h"
#include "braintrace/nn/qua_if.h"
#include "braintrace/nn/synaptic_lif.h"

namespace braintrace::python {
namespace {

using namespace nn;
using Made = std::shared_ptr<Module>;

// Numbers every leaky membrane has, and what ends every signature.
template <class Options>
void take_membrane(Reader& r, Options& o) {
  r.take("R", o.R);
  r.take("tau", o.tau);
  r.take("V_th", o.V_th);
  r.take("V_reset", o.V_reset);
  r.take("V_rest", o.V_rest);
}

template <class Options>
void take_spike(Reader& r, Options& o) {
  r.take("spk_fun", o.spk_fun);
  r.take("spk_reset", o.spk_reset);
  r.take("V_init", o.V_init);
  r.take("dt", o.dt);
}

Made make_lif(Reader& r) {
  const Shape size = r.shape("in_size");
  LIFOptions o;
  take_membrane(r, o);
  take_spike(r, o);
  r.done();
  return r.own<LIF>(size, o);
}

Made make_if(Reader& r) {
  const Shape size = r.shape("in_size");
  IFOptions o;
  r.take("R", o.R);
  r.take("tau", o.tau);
  r.take("V_th", o.V_th);
  take_spike(r, o);
  r.done();
  return r.own<IF>(size, o);
}

Made make_alif(Reader& r) {
  const Shape size = r.shape("in_size");
  ALIFOptions o;
  take_membrane(r, o);
  r.take("tau_a", o.tau_a);
  r.take("beta", o.beta);
  take_spike(r, o);
  r.take("a_init", o.a_init);
  r.done();
  return r.own<ALIF>(size, o);
}

Made make_exp_if(Reader& r) {
  const Shape size = r.shape("in_size");
  ExpIFOptions o;
  take_membrane(r, o);
  r.take("V_T", o.V_T);
  r.take("delta_T", o.delta_T);
  take_spike(r, o);
  r.done();
  return r.own<ExpIF>(size, o);
}

Made make_adex(Reader& r) {
  const Shape size = r.shape("in_size");
  AdExIFOptions o;
  take_membrane(r, o);
  r.take("tau_w", o.tau_w);
  r.take("V_T", o.V_T);
  r.take("delta_T", o.delta_T);
  r.take("a", o.a);
  r.take("b", o.b);
  take_spike(r, o);
  r.take("w_init", o.w_init);
  r.done();
  return r.own<AdExIF>(size, o);
}

Made make_qua_if(Reader& r) {
  const Shape size = r.shape("in_size");
  QuaIFOptions o;
  take_membrane(r, o);
  r.take("V_c", o.V_c);
  r.take("c", o.c);
  take_spike(r, o);
  r.done();
  return r.own<QuaIF>(size, o);
}

Made make_ad_qua_if(Reader& r) {
  const Shape size = r.shape("in_size");
  AdQuaIFOptions o;
  take_membrane(r, o);
  r.take("tau_w", o.tau_w);
  r.take("V_c", o.V_c);
  r.take("c", o.c);
  r.take("a", o.a);
  r.take("b", o.b);
  take_spike(r, o);
  r.take("w_init", o.w_init);
  r.done();
  return r.own<AdQuaIF>(size, o);
}

Made make_gif(Reader& r) {
  const Shape size = r.shape("in_size");
  GifOptions o;
  r.take("R", o.R);
  r.take("tau", o.tau);
  r.take("V_rest", o.V_rest);
  r.take("V_reset", o.V_reset);
  r.take("V_th_inf", o.V_th_inf);
  r.take("V_th_reset", o.V_th_reset);
  r.take("a", o.a);
  r.take("b", o.b);
  r.take("k1", o.k1);
  r.take("k2", o.k2);
  r.take("R1", o.R1);
  r.take("R2", o.R2);
  r.take("A1", o.A1);
  r.take("A2", o.A2);
  take_spike(r, o);
  r.take("V_th_init", o.V_th_init);
  r.take("I1_init", o.I1_init);
  r.take("I2_init", o.I2_init);
  r.done();
  return r.own<Gif>(size, o);
}

Made make_slow_gif(Reader& r) {
  const Shape size = r.shape("in_size");
  GIFOptions o;
  r.take("R", o.R);
  r.take("tau", o.tau);
  r.take("tau_I2", o.tau_I2);
  r.take("A2", o.A2);
  r.take("V_rest", o.V_rest);
  r.take("V_th_inf", o.V_th_inf);
  r.take("spk_fun", o.spk_fun);
  r.take("V_init", o.V_init);
  r.take("I2_init", o.I2_init);
  r.take("dt", o.dt);
  r.done();
  return r.own<GIF>(size, o);
}

Made make_izhikevich(Reader& r) {
  const Shape size = r.shape("in_size");
  IzhikevichOptions o;
  r.take("p1", o.p1);
  r.take("p2", o.p2);
  r.take("p3", o.p3);
  r.take("a", o.a);
  r.take("b", o.b);
  r.take("c", o.c);
  r.take("d", o.d);
  r.take("R", o.R);
  r.take("tau", o.tau);
  r.take("V_th", o.V_th);
  take_spike(r, o);
  r.take("u_init", o.u_init);
  r.done();
  return r.own<Izhikevich>(size, o);
}

Made make_hh(Reader& r) {
  const Shape size = r.shape("in_size");
  HHOptions o;
  r.take("E_Na", o.E_Na);
  r.take("g_Na", o.g_Na);
  r.take("E_K", o.E_K);
  r.take("g_K", o.g_K);
  r.take("E_L", o.E_L);
  r.take("g_L", o.g_L);
  r.take("C", o.C);
  r.take("V_th", o.V_th);
  r.take("V_init", o.V_init);
  r.take("spk_fun", o.spk_fun);
  r.take("dt", o.dt);
  r.done();
  return r.own<HH>(size, o);
}

Made make_lif_ref(Reader& r) {
  const Shape size = r.shape("in_size");
  LIFRefOptions o;
  take_membrane(r, o.membrane);
  r.take("tau_ref", o.tau_ref);
  take_spike(r, o.membrane);
  r.done();
  return r.own<LIFRef>(size, o);
}

Made make_cuba(Reader& r) {
  const Shape size = r.shape("in_size");
  CubaLIFOptions o;
  take_membrane(r, o.membrane);
  r.take("tau_syn", o.tau_syn);
  r.take("g_init", o.g_init);
  take_spike(r, o.membrane);
  r.done();
  return r.own<CubaLIF>(size, o);
}

Made make_coba(Reader& r) {
  const Shape size = r.shape("in_size");
  CobaLIFOptions o;
  take_membrane(r, o.membrane);
  r.take("tau_syn", o.tau_syn);
  r.take("E", o.E);
  r.take("scale", o.scale);
  r.take("g_init", o.g_init);
  take_spike(r, o.membrane);
  r.done();
  return r.own<CobaLIF>(size, o);
}

}  // namespace

std::span<const LayerSpec> neuron_layers() {
  static const LayerSpec table[] = {
      {"LIF", "Neuron", make_lif, typeid(LIF),
       "Leaky integrate-and-fire: dV/dt = (-V + V_rest + R I) / tau.", "LIF(3)", "3",
       "(3,)"},
      {"IF", "Neuron", make_if, typeid(IF), "dV/dt = (-V + R I) / tau, reset to 0.",
       "IF(3)", "3", "(3,)"},
      {"LIFRef", "Neuron", make_lif_ref, typeid(LIFRef), "LIF with a refractory period.",
       "LIFRef(3)", "3", "(3,)"},
      {"ALIF", "Neuron", make_alif, typeid(ALIF),
       "LIF whose threshold rises with each spike.", "ALIF(3)", "3", "(3,)"},
      {"ExpIF", "Neuron", make_exp_if, typeid(ExpIF), "Exponential integrate-and-fire.",
       "ExpIF(3)", "3", "(3,)"},
      {"AdExIF", "Neuron", make_adex, typeid(AdExIF), "ExpIF with an adaptation current.",
       "AdExIF(3)", "3", "(3,)"},
      {"QuaIF", "Neuron", make_qua_if, typeid(QuaIF), "Quadratic integrate-and-fire.",
       "QuaIF(3)", "3", "(3,)"},
      {"AdQuaIF", "Neuron", make_ad_qua_if, typeid(AdQuaIF),
       "QuaIF with an adaptation current.", "AdQuaIF(3)", "3", "(3,)"},
      {"Gif", "Neuron", make_gif, typeid(Gif),
       "Generalised integrate-and-fire with a moving threshold.", "Gif(3)", "3", "(3,)"},
      {"GIF", "Neuron", make_slow_gif, typeid(GIF),
       "One slow adaptation current; returns a standardised analogue value.", "GIF(3)",
       "3", "(3,)"},
      {"Izhikevich", "Neuron", make_izhikevich, typeid(Izhikevich),
       "Izhikevich's two-variable neuron.", "Izhikevich(3)", "3", "(3,)"},
      {"HH", "Neuron", make_hh, typeid(HH), "The Hodgkin-Huxley neuron.", "HH(3)", "3",
       "(3,)"},
      {"CubaLIF", "Neuron", make_cuba, typeid(CubaLIF),
       "LIF with a current synapse built in.", "CubaLIF(3)", "3", "(3,)"},
      {"CobaLIF", "Neuron", make_coba, typeid(CobaLIF),
       "LIF with a conductance synapse built in.", "CobaLIF(3)", "3", "(3,)"},
  };
  return table;
}

}  // namespace braintrace::python
