// SPDX-License-Identifier: Apache-2.0
// A sparse spiking network as large as the fruit fly's brain learns online with pp_prop:
//   19_whole_brain 127400 115 400      neurons, connections per neuron, steps
// Without arguments: a small one. Connections are drawn at random (every neuron reaches
// 1/2 to 3/2 of the mean number of others); 80 % of the neurons excite, 20 % inhibit,
// four times as strongly. It hears a repeating spike pattern and learns to draw a curve.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/optimizers.h"

using namespace braintrace;

constexpr std::int64_t kInputs = 200, kPeriod = 50;

struct Brain : nn::Module {
  nn::SparseLinear feed, wires;
  nn::Expon synapse;
  nn::LIF neuron;
  nn::LeakyRateReadout out;
  Array sign;  // by neuron: what its spikes do to others

  Brain(std::int64_t n, std::int64_t degree)
      : feed(random_structure(kInputs, n, n / 20, 1),
             {.w_init = nn::init::uniform(0, 0.6)}),
        wires(random_structure(n, n, degree, 2),
              {.w_init = nn::init::uniform(0, 2.0 / static_cast<double>(degree))}),
        synapse({n}, {.tau = 5}),
        neuron({n}, {.tau = 20, .spk_fun = nn::Surrogate("ReluGrad", {{"alpha", 1}})}),
        out(n, 1, {.tau = 10, .w_init = nn::init::normal(0, 1e-3)}),
        sign(ones({n})) {
    for (std::int64_t i = 4 * n / 5; i < n; ++i) sign.mutable_data<float>()[i] = -4;
    add("feed", feed);
    add("wires", wires);
    add("synapse", synapse);
    add("neuron", neuron);
    add("out", out);
  }

  Values update_all(const Values& in) override {
    const Value heard = feed(in[0]) + wires(neuron.get_spike() * sign);
    const Value spikes = neuron(synapse(heard));
    return {out(spikes), mean(spikes)};
  }
};

double curve(std::int64_t t) {
  const double phase = 2 * M_PI * static_cast<double>(t % kPeriod) / kPeriod;
  return std::sin(phase) + 0.5 * std::sin(2 * phase);
}

// One input in ten spikes, always the same at the same time of the period.
Array pattern(std::int64_t t) {
  Array x = zeros({kInputs});
  for (std::int64_t i = 0; i < kInputs; ++i)
    x.mutable_data<float>()[i] = (i * i + 3 * i * t + 7 * t * t) % 101 < 10 ? 1 : 0;
  return x;
}

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
  return 0;
}

int main(int argc, char** argv) {
  const auto given = [&](int i, std::int64_t otherwise) {
    return i < argc ? static_cast<std::int64_t>(std::atoll(argv[i])) : otherwise;
  };
  const std::int64_t n = given(1, 2000), degree = given(2, 40), steps = given(3, 1000);
  Brain model(n, degree);
  Learner learner =
      compile(model, pp_prop{.decay_or_rank = 0.9}, zeros({kInputs}), {.seed = 1});
  const std::int64_t synapses = model.wires.weight.stored().size();
  fmt::print("{} neurons, {} synapses\n", n, synapses);

  std::vector<std::vector<Array>> data;
  for (std::int64_t t = 0; t < kPeriod; ++t)
    data.push_back({pattern(t), array({curve(t)})});
  LossHandle loss = learner.trace_loss(
      [&](const Values& in) {
        const Values y = learner(Values{in[0]});
        return LossResult{.loss = mse(y[0], in[1]), .results = {y[1]}};
      },
      data[0]);
  Optimizer optimizer(SGD{.lr = 0.3 / static_cast<double>(n)});
  optimizer.attach(model);

  constexpr double constant = 0.625;  // mean square of the curve: its mean is 0
  double total = 0, rate = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t t = 0; t < steps; ++t) {
    const StepGradient g =
        learner.step_grad(data[static_cast<std::size_t>(t % kPeriod)], loss);
    optimizer.update(*g.gradients);
    total += g.loss / kPeriod;
    rate += g.results[0].at(0) / kPeriod;
    if ((t + 1) % kPeriod != 0) continue;
    const std::chrono::duration<double> s = std::chrono::steady_clock::now() - start;
    fmt::print("step {}: loss {:.4f} (constant {:.4f}), {:.2f} % spike\n", t + 1, total,
               constant, 100 * rate);
    fmt::print(stderr, "  {:.1f} steps/s, {:.3g} synapses/s, peak {:.0f} MB\n",
               static_cast<double>(t + 1) / s.count(),
               static_cast<double>((t + 1) * synapses) / s.count(), peak_mb());
    if (t + 1 == steps) return total < 0.5 * constant ? 0 : 1;
    total = rate = 0;
  }
  return 1;
}
