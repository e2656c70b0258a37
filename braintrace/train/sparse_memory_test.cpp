// SPDX-License-Identifier: Apache-2.0
// A large sparse network learns in a few bytes per connection: its structure is stored
// once, and nothing is as large as all pairs of neurons.
#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/peak_memory.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/optimizers.h"

namespace sparse_memory_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kNeurons = 20'000, kDegree = 100;

struct Net : nn::Module {
  nn::SparseLinear wires;
  nn::LIF neuron;
  nn::LeakyRateReadout out;
  Net()
      : wires(random_structure(kNeurons, kNeurons, kDegree, 1),
              {.w_init = nn::init::uniform(0, 0.02)}),
        neuron({kNeurons}, {.tau = 20}),
        out(kNeurons, 1, {.w_init = nn::init::normal(0, 0.01)}) {
    add("wires", wires);
    add("neuron", neuron);
    add("out", out);
  }
  Value update(Value x) override { return out(neuron(x + wires(neuron.get_spike()))); }
};

// Peak bytes per connection while a learner lives through some steps.
double bytes_per_connection(const Algorithm& algorithm) {
  const double before = testing::reset_peak() ? *testing::peak_bytes() : 0;
  Net model;
  const Array x = full({kNeurons}, 1.5);
  Learner learner = compile(model, algorithm, x, {.seed = 1});
  LossHandle loss = learner.trace_loss(
      [&](const Values& in) {
        return LossResult{.loss = mse(learner(in[0]), in[1]), .results = {}};
      },
      {x, ones({1})});
  Optimizer optimizer(SGD{.lr = 1e-3});
  optimizer.attach(model);
  double moved = 0;
  for (int t = 0; t < 30; ++t) {
    const StepGradient g = learner.step_grad({x, ones({1})}, loss);
    optimizer.update(*g.gradients);
    const Array& d = g.gradients->at("wires/weight/weight");
    for (std::int64_t p = 0; p < d.size(); p += 97) moved += std::abs(d.at(p));
  }
  CHECK(moved > 0);  // a network that is silent would prove nothing
  const auto connections = static_cast<double>(model.wires.weight.stored().size());
  return (*testing::peak_bytes() - before) / connections;
}

}  // namespace

TEST_CASE("pp_prop on sparse connections takes few bytes for each") {
  if (!testing::reset_peak() || !testing::peak_bytes()) return;
  // Structure 8, weight 4, gradient 4, and what is computed on the way.
  CHECK(bytes_per_connection(pp_prop{.decay_or_rank = 0.9}) < 34);
}

TEST_CASE("D_RTRL on sparse connections has a trace for each, and no more") {
  if (!testing::reset_peak() || !testing::peak_bytes()) return;
  CHECK(bytes_per_connection(D_RTRL{}) < 60);
}

}  // namespace sparse_memory_test
