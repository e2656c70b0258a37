// SPDX-License-Identifier: Apache-2.0
// Align-post, delta and current projections.
#include "braintrace/nn/projection.h"

#include <fmt/core.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {

AlignPost::AlignPost(Neuron& post, std::unique_ptr<Synapse> synapse, SynapseOutput output,
                     const std::string& label)
    : post_(post), synapse_(std::move(synapse)) {
  BT_REQUIRE(synapse_ != nullptr, "AlignPost: needs a synapse, got none");
  add("syn", *synapse_);
  const std::string name =
      label.empty() ? fmt::format("AlignPost[{},{}]", synapse_->kind(), output.name())
                    : label;
  Synapse* s = synapse_.get();
  post_.add_source(
      name, [s, output](const Value& V) { return output(s->value(), V); }, this,
      [s] { s->update(); });
}

AlignPostProj::AlignPostProj(Module& comm, AlignPost& synapse)
    : comm_(comm), synapse_(synapse) {
  add("comm", comm);
  add("post", synapse.post());
}

Value AlignPostProj::update(Value x) {
  const Value y = comm_(std::move(x));
  synapse_.synapse().add_delta(y);
  return y;
}

DeltaProj::DeltaProj(Module& comm, Neuron& post) : comm_(comm), post_(post) {
  add("comm", comm);
  add("post", post);
}

Value DeltaProj::update(Value x) {
  const Value y = comm_(std::move(x));
  post_.add_delta(y);
  return y;
}

CurrentProj::CurrentProj(Module& comm, SynapseOutput output, Neuron& post)
    : comm_(comm), output_(std::move(output)), post_(post) {
  add("comm", comm);
  add("post", post);
}

Value CurrentProj::update(Value x) {
  const Value g = comm_(std::move(x));
  post_.add_current([output = output_, g](const Value& V) { return output(g, V); });
  return g;
}

}  // namespace braintrace::nn
