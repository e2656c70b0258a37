// SPDX-License-Identifier: Apache-2.0
// A convolutional spiking network reads a digit row by row and names it at the last row.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

nn::LIFOptions lif(double R, double tau) {
  return {.R = R, .tau = tau, .spk_fun = nn::Surrogate("ReluGrad", {{"alpha", 1}})};
}

// Row -> convolution -> LIF per place and channel -> dense -> LIF -> readout.
struct Net : nn::Module {
  nn::Conv1d conv;
  nn::LIF first;
  nn::Linear weight;
  nn::LIF second;
  nn::LeakyRateReadout out;

  Net(std::int64_t width, std::int64_t channels, std::int64_t n, std::int64_t n_out)
      : conv({width, 1}, channels, {.kernel_size = 3, .padding = "SAME"}),
        first({width, channels}, lif(10, 4)),
        weight(width * channels + n, n),
        second({n}, lif(10, 10)),
        out(n, n_out, {.tau = 10, .w_init = nn::init::normal(0, 0.1)}) {
    add("conv", conv);
    add("first", first);
    add("weight", weight);
    add("second", second);
    add("out", out);
  }

  Values update_all(const Values& in) override {
    const Value last = second.get_spike();
    const Value maps = first(conv(expand_dims(in[0], -1)));
    Shape flat_shape = in[0].shape();
    flat_shape.back() = -1;
    const Value flat = reshape(maps, flat_shape);
    const Value spikes = second(weight(concat({flat, last})));
    return {out(spikes), concat({flat, spikes})};
  }
};

judge::Outcome train(std::uint64_t seed) {
  const Task task = digits_task({.task = {seed}});
  Net model(task.shape().features, 4, 64, task.shape().outputs);
  Learner learner = compile(model, pp_prop{.decay_or_rank = 0.9}, judge::example(task),
                            judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 5e-3}, {.clip_norm = 1}), 400);
}

int main() { return judge::run(train); }
