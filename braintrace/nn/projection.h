// SPDX-License-Identifier: Apache-2.0
#pragma once
// From one population to another: a connection (Linear, Conv2d, ...) and what it feeds.
//
//   LIF neu({n});
//   AlignPost exc_syn(neu, std::make_unique<Expon>(Shape{n}, ...), COBA(1500));
//   Linear w_in(...), w_rec(...);
//   AlignPostProj ff(w_in, exc_syn), rec(w_rec, exc_syn);   // two connections, one g
//   ...
//   ff(x); rec(neu.get_spike()); Value spikes = neu();
#include <memory>

#include "braintrace/nn/synapse.h"
#include "braintrace/nn/synapse_output.h"

namespace braintrace::nn {

// One synapse on a neuron, shared by every projection that feeds it. It runs when the
// neuron does, before it; its state stands under the neuron, at
// _before_updates/AlignPost[<synapse>,<output>]/syn; a second synapse of the same kind
// on one neuron needs a `label` to stand under instead. Must live as long as the neuron.
class AlignPost : public Module {
 public:
  AlignPost(Neuron& post, std::unique_ptr<Synapse> synapse, SynapseOutput output,
            const std::string& label = {});

  Synapse& synapse() { return *synapse_; }
  Neuron& post() { return post_; }

 private:
  Neuron& post_;
  std::unique_ptr<Synapse> synapse_;
};

// comm(x) becomes input of the synapse. Returns it.
class AlignPostProj : public Module {
 public:
  AlignPostProj(Module& comm, AlignPost& synapse);
  Value update(Value x) override;

 private:
  Module& comm_;
  AlignPost& synapse_;
};

// comm(x) is added to the neuron's potential after integration (mV). Returns it.
class DeltaProj : public Module {
 public:
  DeltaProj(Module& comm, Neuron& post);
  Value update(Value x) override;

 private:
  Module& comm_;
  Neuron& post_;
};

// output(comm(x), V) is a current of the neuron's next step. Returns comm(x).
class CurrentProj : public Module {
 public:
  CurrentProj(Module& comm, SynapseOutput output, Neuron& post);
  Value update(Value x) override;

 private:
  Module& comm_;
  SynapseOutput output_;
  Neuron& post_;
};

}  // namespace braintrace::nn
