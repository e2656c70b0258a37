// SPDX-License-Identifier: Apache-2.0
// Reward learning with three factors: input, chance of the neuron's own spike, late
// reward.
//
// Neurons that fire at random vote for one of two actions. Their eligibility trace is the
// gradient of the log-probability of what they did; the reward comes four steps later,
// one number for all.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

constexpr int kBatch = judge::kBatch, kCues = 4, kInputs = 20, kNeurons = 40,
              kTrials = 60, kTested = 20;

// Spikes with probability sigmoid(W x - 1.5); h sums log-probabilities, with a leak.
struct Voters : nn::Module {
  nn::Linear weight{kInputs, kNeurons, {.b_init = {}}};
  HiddenState h{{kNeurons}};
  Voters() {
    add("weight", weight);
    add("h", h);
  }
  Values update_all(const Values& in) override {
    const Value u = weight(in[0]) - 1.5;
    const Value spikes = stop_gradient(astype(less(in[1], sigmoid(u)), DType::f32));
    const Value log_p = spikes * nn::log_sigmoid(u) + (1 - spikes) * nn::log_sigmoid(-u);
    h.set(0.95 * h.value() + log_p);
    return {spikes};
  }
};

struct TrialResult {
  StateDict grads;
  std::int64_t hits = 0;
  double rate = 0;
};

Value key_for(RngKey key, std::int64_t i) {
  return random_fold_in(key_array(key), array(Shape{}, {double(i)}, DType::i32));
}

// Three steps of a cue, four of waiting, then the reward.
TrialResult trial(Learner& learner, LossHandle& loss, RngKey key, const Value& cues) {
  const Value cue = astype(random_uniform(key_for(key, 0), {kBatch}) * kCues, DType::i32);
  const Value x = take(cues, cue, 0), nothing = zeros({kBatch, kInputs});
  judge::start_again(learner);
  Value votes = zeros({kBatch, 2}), noise = zeros({kBatch, kNeurons});
  TrialResult out;
  for (int t = 0; t < 7; ++t) {
    noise = random_uniform(key_for(key, t + 1), {kBatch, kNeurons});
    const Array spikes = learner.step({(t < 3 ? x : nothing).array(), noise.array()})[0];
    if (t >= 3) continue;
    votes = votes + sum(reshape(spikes, {kBatch, 2, -1}), {.axes = {2}});
    out.rate += mean(spikes).array().item() / 3;
  }
  // Even cues want action 0, odd ones action 1.
  const Value wanted = cue - astype(floor(astype(cue, DType::f32) / 2), DType::i32) * 2;
  const Value right = astype(equal(argmax(votes, 1), wanted), DType::f32);
  const Value reward = right - mean(right);
  learner.set_modulator((-reshape(reward, {-1, 1, 1}) / kBatch).array());
  out.grads = *learner.step_grad({nothing.array(), noise.array()}, loss).gradients;
  out.hits = static_cast<std::int64_t>(sum(right).array().item());
  return out;
}

judge::Outcome train(std::uint64_t seed) {
  const RngKey key = rng_key(seed);
  const Value drawn = random_uniform(key_for(key, 1000), {kCues, kInputs});
  const Value cues = astype(less(drawn, 0.3), DType::f32);
  Voters model;
  const std::vector<Array> examples = {zeros({kBatch, kInputs}),
                                       zeros({kBatch, kNeurons})};
  Learner learner = compile(model, ThreeFactor{}, examples, judge::options(seed));
  learner.set_modulator(zeros({kBatch, 1, 1}));
  LossHandle loss = learner.trace_loss(
      [&](const Values& in) {
        return LossResult{mean(learner(in)[0]), {}};
      },
      examples);
  Optimizer adam(Adam{.lr = 5e-2});
  judge::Outcome out{.rate = 0};
  for (int i = 0; i < kTrials; ++i) {
    TrialResult r = trial(learner, loss, key_from_array(key_for(key, i).array()), cues);
    adam.update(model, r.grads);
    // Later everyone is right, and nothing is left to learn.
    if (out.grads.empty()) out.grads = r.grads;
    if (i < kTrials - kTested) continue;
    out.hits += r.hits;
    out.trials += kBatch;
    *out.rate += r.rate / kTested;
  }
  return out;
}

int main() { return judge::run(train); }
