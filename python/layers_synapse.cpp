// SPDX-License-Identifier: Apache-2.0
// Synapses, projections and what strings modules together.
#include "layers.h"
#include "py_module.h"
#include <fmt/format.h>

#include "braintrace/nn/projection.h"
#include "braintrace/nn/sequential.h"
#include "braintrace/nn/synapse.h"

namespace braintrace::python {
namespace {

using namespace nn;
using Made = std::shared_ptr<Module>;

Made make_expon(Reader& r) {
  const Shape size = r.shape("in_size");
  ExponOptions o;
  r.take("tau", o.tau);
  r.take("g_init", o.g_init);
  r.take("dt", o.dt);
  r.done();
  return r.own<Expon>(size, o);
}

Made make_dual_expon(Reader& r) {
  const Shape size = r.shape("in_size");
  DualExponOptions o;
  r.take("tau_decay", o.tau_decay);
  r.take("tau_rise", o.tau_rise);
  r.take("amplitude", o.amplitude);
  r.take("normalize", o.normalize);
  r.take("g_init", o.g_init);
  r.take("dt", o.dt);
  r.done();
  return r.own<DualExpon>(size, o);
}

Made make_alpha(Reader& r) {
  const Shape size = r.shape("in_size");
  AlphaOptions o;
  r.take("tau", o.tau);
  r.take("g_init", o.g_init);
  r.take("dt", o.dt);
  r.done();
  return r.own<Alpha>(size, o);
}

Made make_stp(Reader& r) {
  const Shape size = r.shape("in_size");
  STPOptions o;
  r.take("U", o.U);
  r.take("tau_f", o.tau_f);
  r.take("tau_d", o.tau_d);
  r.take("dt", o.dt);
  r.done();
  return r.own<STP>(size, o);
}

Made make_std(Reader& r) {
  const Shape size = r.shape("in_size");
  STDOptions o;
  r.take("U", o.U);
  r.take("tau", o.tau);
  r.take("dt", o.dt);
  r.done();
  return r.own<STD>(size, o);
}

Neuron& as_neuron(Module* m) {
  auto* n = dynamic_cast<Neuron*>(m);
  if (n == nullptr)
    throw UserError(ErrorKind::type, "post must be a neuron of braintrace_cpp.nn");
  return *n;
}

const SynapseOutput& output_of(const py::object& o) {
  if (!py::isinstance<Recorded<SynapseOutput>>(o))
    throw UserError(ErrorKind::type,
                    fmt::format("output must be CUBA, COBA or MgBlock, got {}",
                                py::repr(o).cast<std::string>()));
  return o.cast<const Recorded<SynapseOutput>&>();
}

// A synapse that is owned elsewhere, as the unique owner AlignPost asks for.
class BorrowedSynapse : public Synapse {
 public:
  BorrowedSynapse(Synapse& s, std::shared_ptr<Module> owner)
      : Synapse(s.kind(), {1}, 1), synapse_(s), owner_(std::move(owner)) {
    for (const auto& [key, member] : s.members())
      std::visit([&, &name = std::get<std::string>(key)](auto* m) { add(name, *m); },
                 member);
  }
  Value value() override { return synapse_.value(); }

 protected:
  Value step(const Tangent& input) override {
    return input ? synapse_.update(*input) : synapse_.update();
  }

 private:
  Synapse& synapse_;
  std::shared_ptr<Module> owner_;
};

Made make_align_post(Reader& r) {
  Module* post = r.module("post");
  const py::object synapse = r.object("synapse");
  const py::object output = r.object("output");
  std::string label;
  r.take("label", label);
  r.done();
  const auto held = module_of(synapse);
  auto* s = dynamic_cast<Synapse*>(held.get());
  if (s == nullptr)
    throw UserError(ErrorKind::type, "synapse must be a synapse of braintrace_cpp.nn");
  return r.own<AlignPost>(as_neuron(post), std::make_unique<BorrowedSynapse>(*s, held),
                          output_of(output), label);
}

Made make_align_post_proj(Reader& r) {
  Module* comm = r.module("comm");
  Module* synapse = r.module("synapse");
  r.done();
  auto* s = dynamic_cast<AlignPost*>(synapse);
  if (s == nullptr) throw UserError(ErrorKind::type, "synapse must be an AlignPost");
  return r.own<AlignPostProj>(*comm, *s);
}

Made make_delta_proj(Reader& r) {
  Module* comm = r.module("comm");
  Module* post = r.module("post");
  r.done();
  return r.own<DeltaProj>(*comm, as_neuron(post));
}

Made make_current_proj(Reader& r) {
  Module* comm = r.module("comm");
  const py::object output = r.object("output");
  Module* post = r.module("post");
  r.done();
  return r.own<CurrentProj>(*comm, output_of(output), as_neuron(post));
}

Made make_sequential(Reader& r) {
  const auto [layers, named] = r.rest("layers");
  r.done();
  if (named.size() > 0) {
    std::vector<std::pair<std::string, Sequential::Child>> children;
    for (const auto& [name, layer] : named)
      children.emplace_back(name.cast<std::string>(), module_of(layer));
    return r.own<Sequential>(std::move(children));
  }
  std::vector<Sequential::Child> children;
  for (py::handle layer : layers) children.push_back(module_of(layer));
  return r.own<Sequential>(std::move(children));
}

}  // namespace

std::span<const LayerSpec> synapse_layers() {
  static const LayerSpec table[] = {
      {"Expon", "Synapse", make_expon, typeid(Expon), "g <- g e^(-dt / tau) + x.",
       "Expon(3)", "3", "(3,)"},
      {"DualExpon", "Synapse", make_dual_expon, typeid(DualExpon),
       "Rise and decay with a time constant each.", "DualExpon(3)", "3", "(3,)"},
      {"Alpha", "Synapse", make_alpha, typeid(Alpha), "The alpha synapse.", "Alpha(3)",
       "3", "(3,)"},
      {"STP", "Module", make_stp, typeid(STP), "Short-term plasticity of spikes.",
       "STP(3)", "3", "(3,)"},
      {"STD", "Module", make_std, typeid(STD), "Short-term depression of spikes.",
       "STD(3)", "3", "(3,)"},
      {"AlignPost", "Module", make_align_post, typeid(AlignPost),
       "One synapse on a neuron, shared by every projection that feeds it.\n\n"
       ">>> neuron = bt.nn.LIF(2)\n"
       ">>> synapse = bt.nn.AlignPost(neuron, bt.nn.Expon(2), bt.nn.CUBA())\n"
       ">>> isinstance(synapse, bt.nn.Module)\nTrue"},
      {"AlignPostProj", "Module", make_align_post_proj, typeid(AlignPostProj),
       "comm(x) becomes input of the synapse.\n\n"
       ">>> neuron = bt.nn.LIF(2)\n"
       ">>> synapse = bt.nn.AlignPost(neuron, bt.nn.Expon(2), bt.nn.CUBA())\n"
       ">>> bt.nn.AlignPostProj(bt.nn.Linear(3, 2), synapse)\n"
       "AlignPostProj(comm=Linear, post=LIF)"},
      {"DeltaProj", "Module", make_delta_proj, typeid(DeltaProj),
       "comm(x) is added to the neuron's potential.\n\n"
       ">>> bt.nn.DeltaProj(bt.nn.Linear(3, 2), bt.nn.LIF(2))\n"
       "DeltaProj(comm=Linear, post=LIF)"},
      {"CurrentProj", "Module", make_current_proj, typeid(CurrentProj),
       "output(comm(x), V) is a current of the neuron's next step.\n\n"
       ">>> bt.nn.CurrentProj(bt.nn.Linear(3, 2), bt.nn.CUBA(), bt.nn.LIF(2))\n"
       "CurrentProj(comm=Linear, post=LIF)"},
      {"Sequential", "Module", make_sequential, typeid(Sequential),
       "Modules one after the other, under their positions or names.",
       "Sequential(bt.nn.Linear(2, 4), bt.nn.ReLU())", "2", "(4,)"},
  };
  return table;
}

}  // namespace braintrace::python
