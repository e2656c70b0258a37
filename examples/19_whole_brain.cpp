// SPDX-License-Identifier: Apache-2.0
// A sparse spiking network as large as the fruit fly's brain learns online with pp_prop:
//   19_whole_brain 127400 115 1000     neurons, connections per neuron, steps
// Without arguments: a small one, for three seeds. Connections are drawn at random (every
// neuron reaches 1/2 to 3/2 of the mean number of others); 80 % of the neurons excite, 20
// % inhibit, four times as strongly. It hears a repeating spike pattern and learns to
// draw a curve.
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "judge.h"
#include <fmt/format.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/losses.h"

using namespace braintrace;

constexpr std::int64_t kInputs = 200, kPeriod = 50;

struct Size {
  std::int64_t neurons = 2000, degree = 40, steps = 2000;
};

struct Brain : nn::Module {
  nn::SparseLinear feed, wires;
  nn::Expon synapse;
  nn::LIF neuron;
  nn::LeakyRateReadout out;
  Array sign;  // by neuron: what its spikes do to others

  Brain(std::int64_t n, std::int64_t degree, std::uint64_t seed)
      : feed(random_structure(kInputs, n, n / 20, 2 * seed + 1),
             {.w_init = nn::init::uniform(0, 0.6)}),
        wires(random_structure(n, n, degree, 2 * seed + 2),
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

using Told = std::function<void(std::int64_t step, double loss, double rate)>;

// What the last period came to. `told` hears of every period.
judge::Outcome train(Brain& model, const Size& size, std::uint64_t seed,
                     const Told& told = {}) {
  Learner learner =
      compile(model, pp_prop{.decay_or_rank = 0.9}, zeros({kInputs}), {.seed = seed});
  std::vector<std::vector<Array>> data;
  for (std::int64_t t = 0; t < kPeriod; ++t)
    data.push_back({pattern(t), array({curve(t)})});
  LossHandle loss = learner.trace_loss(
      [&](const Values& in) {
        const Values y = learner(Values{in[0]});
        return LossResult{.loss = mse(y[0], in[1]), .results = {y[1]}};
      },
      data[0]);
  Optimizer optimizer(SGD{.lr = 0.3 / static_cast<double>(size.neurons)});

  judge::Outcome out;
  for (std::int64_t t = 0; t < size.steps; ++t) {
    const std::int64_t phase = t % kPeriod;
    // 0.625: mean square of the curve; its mean is 0.
    if (phase == 0) out = {.loss = 0, .constant = 0.625, .rate = 0};
    const std::vector<Array>& pair = data[static_cast<std::size_t>(phase)];
    const bool last =
        t + 1 == size.steps;  // its gradient is looked at, and moves nothing
    const StepGradient g =
        last ? learner.step_grad(pair, loss) : learner.step_update(pair, loss, optimizer);
    out.loss += g.loss / kPeriod;
    *out.rate += g.results[0].at(0) / kPeriod;
    if (last) out.grads = *g.gradients;
    if (told && phase + 1 == kPeriod) told(t + 1, out.loss, *out.rate);
  }
  return out;
}

// One network of the size asked for, with its speed and memory.
int train_large(const Size& size) {
  Brain model(size.neurons, size.degree, 0);
  const auto start = std::chrono::steady_clock::now();
  const judge::Outcome out =
      train(model, size, 0, [&](std::int64_t step, double loss, double rate) {
        const std::chrono::duration<double> s = std::chrono::steady_clock::now() - start;
        const std::int64_t synapses = model.wires.weight.stored().size();
        if (step == kPeriod)
          fmt::print("{} neurons, {} synapses\n", size.neurons, synapses);
        fmt::print("step {}: loss {:.4f}, {:.2f} % spike\n", step, loss, 100 * rate);
        fmt::print(stderr, "  {:.1f} steps/s, {:.3g} synapses/s, peak {:.0f} MB\n",
                   static_cast<double>(step) / s.count(),
                   static_cast<double>(step * synapses) / s.count(), peak_mb());
      });
  fmt::print("{}\n", out.to_string());
  for (const std::string& fault : out.faults()) fmt::print("  FAILED: {}\n", fault);
  return out.faults().empty() ? 0 : 1;
}

Size size_from(const std::vector<std::string_view>& words) {
  const auto number = [](std::string_view word) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(word.begin(), word.end(), n);
    BT_REQUIRE(error == std::errc() && end == word.end() && n > 0,
               fmt::format("not a positive whole number: '{}'", word));
    return n;
  };
  BT_REQUIRE(words.size() <= 3, fmt::format("at most 3 numbers, got {}", words.size()));
  Size size;
  std::int64_t* const fields[] = {&size.neurons, &size.degree, &size.steps};
  for (std::size_t i = 0; i < words.size(); ++i) *fields[i] = number(words[i]);
  BT_REQUIRE(size.neurons >= 20 && 2 * size.degree <= size.neurons,
             fmt::format("{} neurons cannot have {} connections each: at least 20 "
                         "neurons, at most half as many connections",
                         size.neurons, size.degree));
  BT_REQUIRE(size.steps % kPeriod == 0,
             fmt::format("steps must be a multiple of {}, the length of the pattern, "
                         "got {}",
                         kPeriod, size.steps));
  return size;
}

int main(int argc, char** argv) {
  if (argc == 1)
    return judge::run([](std::uint64_t seed) {
      const Size small;
      Brain model(small.neurons, small.degree, seed);
      return train(model, small, seed);
    });
  try {
    return train_large(size_from({argv + 1, argv + argc}));
  } catch (const UserError& e) {
    fmt::print(stderr,
               "19_whole_brain: {}\nusage: 19_whole_brain [NEURONS [CONNECTIONS "
               "[STEPS]]]\n",
               e.what());
    return 2;
  }
}
