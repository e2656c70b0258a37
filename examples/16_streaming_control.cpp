// SPDX-License-Identifier: Apache-2.0
// A controller that learns while it acts: weights move at every step, nothing is stored.
//
// A vehicle in an unknown wind must keep a changing speed. The network sees wanted and
// present speed and sets the thrust; the loss is the speed error of the next step.
#include <cmath>

#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

constexpr int kSteps = 3000;
constexpr double kThrust = 0.3;

struct Controller : nn::Module {
  nn::GRUCell rnn;
  nn::Linear out;
  explicit Controller(std::int64_t n) : rnn(2, n), out(n, 1) {
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(x)); }
};

double wanted(int t) { return std::sin(t / 20.0) + 0.5 * std::sin(t / 7.0); }

// Where the vehicle goes without thrust: drag and a slow wind.
double drift(double speed, int t) { return 0.9 * speed + 0.3 * std::sin(t / 50.0); }

// Mean squared error of the same ride with one thrust for all steps.
double error_of_constant(double thrust, int start) {
  double speed = 0, total = 0;
  for (int t = start; t < start + kSteps; ++t) {
    speed = drift(speed, t) + kThrust * thrust;
    total += std::pow(speed - wanted(t), 2) / kSteps;
  }
  return total;
}

judge::Outcome train(std::uint64_t seed) {
  Controller model(32);
  LearnerOptions options{.seed = seed};
  options.graph.weight_paths = WeightPaths::local;
  Learner learner = compile(model, D_RTRL{}, zeros({2}), options);
  const auto error = [&](const Values& in) {
    const Value thrust = learner(in[0]);
    const Value miss = in[1] + kThrust * thrust - slice_axis(in[0], 0, 0, 1);
    return LossResult{mean(pow(miss, 2)), {thrust}};
  };
  LossHandle loss = learner.trace_loss(error, {zeros({2}), zeros({1})});
  Optimizer adam(Adam{.lr = 3e-3});
  judge::Outcome out;
  const int start = 1000 * static_cast<int>(seed);
  double speed = 0;
  for (int t = start; t < start + kSteps; ++t) {
    const double drifted = drift(speed, t);
    const StepGradient g =
        learner.step_grad({array({wanted(t), speed}), array({drifted})}, loss);
    const double thrust = g.results[0].at(0);
    adam.update(model, *g.gradients);
    out.loss += g.loss / kSteps;
    speed = drifted + kThrust * thrust;
    if (t == start + kSteps - 1) out.grads = *g.gradients;
  }
  out.constant = INFINITY;
  for (int i = -20; i <= 20; ++i)
    out.constant = std::min(out.constant, error_of_constant(i / 10.0, start));
  return out;
}

int main() { return judge::run(train); }
