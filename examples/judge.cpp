// SPDX-License-Identifier: Apache-2.0
#include "judge.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "braintrace/train/losses.h"

namespace judge {
namespace {

Value loss_of(const Task& task, const Value& scores, const Value& targets) {
  return task.loss() == TaskLoss::mse ? mse(scores, targets)
                                      : softmax_cross_entropy(scores, targets);
}

// The scored steps of a sequence.
Value scored(const Task& task, const Array& a) {
  std::vector<double> steps;
  for (std::size_t t = 0; t < task.mask().size(); ++t)
    if (task.mask()[t] > 0) steps.push_back(static_cast<double>(t));
  const auto n = static_cast<std::int64_t>(steps.size());
  return take(a, array({n}, steps, DType::i32), 0);
}

// 0 when an entry is not a number.
double largest(const Array& a) {
  double out = 0;
  for (double v : a.to_doubles()) {
    if (!std::isfinite(v)) return 0;
    out = std::max(out, std::abs(v));
  }
  return out;
}

int report(const std::string& name, std::uint64_t seed, const Outcome& outcome) {
  fmt::print("{}seed {}: {}\n", name, seed, outcome.to_string());
  int bad = 0;
  for (const std::string& fault : outcome.faults()) {
    fmt::print("  FAILED: {}\n", fault);
    ++bad;
  }
  std::fflush(stdout);
  return bad;
}

}  // namespace

std::vector<std::string> Outcome::faults() const {
  std::vector<std::string> out;
  if (trials > 0) {
    const double n = static_cast<double>(trials);
    const double error = std::sqrt(chance * (1 - chance) / n);
    if (!(static_cast<double>(hits) / n > chance + 3 * error))
      out.push_back("not above chance by 3 standard errors");
  } else if (!(loss < 0.7 * constant)) {
    out.push_back("the loss is not below 0.7 of the best constant's");
  }
  if (rate && !(*rate >= 0.01 && *rate <= 0.4))
    out.push_back("neurons do not fire between 1 and 40 % of the time");
  for (const auto& [path, g] : grads)
    if (largest(g) == 0) out.push_back("no gradient for " + path);
  return out;
}

std::string Outcome::to_string() const {
  const std::string text =
      trials > 0 ? fmt::format("{} of {} right, chance {:.2f}", hits, trials, chance)
                 : fmt::format("loss {:.4f}, constant {:.4f}", loss, constant);
  return rate ? fmt::format("{}, firing {:.1f} %", text, 100 * *rate) : text;
}

LearnerOptions options(std::uint64_t seed) {
  return {.batch_size = kBatch, .seed = seed};
}

Array example(const Task& task) { return zeros({kBatch, task.shape().features}); }

void start_again(Learner& learner) {
  init_all_states(learner.model(), {.batch_size = kBatch});
  learner.reset_state();
}

StateDict fit(Learner& learner, const Task& task, Optimizer& optimizer, int batches) {
  const auto steps = static_cast<std::int64_t>(task.mask().size());
  GradOptions grad;
  grad.mask = array({steps}, task.mask());
  grad.carry_traces = false;
  const auto loss = [&](const Values& in) {
    return LossResult{loss_of(task, learner(Values{in[0]})[0], in[1]), {}};
  };
  StateDict grads;
  for (int i = 0; i < batches; ++i) {
    const TaskBatch data = task.batch(Split::train, i * kBatch, kBatch);
    start_again(learner);
    grads = learner.etrace_grad({data.inputs, data.targets}, loss, grad).grads;
    optimizer.update(learner.model(), grads);
  }
  return grads;
}

Outcome evaluate(Learner& learner, const Task& task, int batches) {
  Outcome out;
  out.constant =
      constant_baseline(task, task.batch(Split::test, 0, kBatch * batches)).loss;
  for (int i = 0; i < batches; ++i) {
    const TaskBatch data = task.batch(Split::test, i * kBatch, kBatch);
    start_again(learner);
    const auto results = learner.etrace_evolve({data.inputs}, {.return_outputs = true});
    const Value loss =
        loss_of(task, scored(task, results[0]), scored(task, data.targets));
    out.loss += loss.array().item() / batches;
    if (results.size() > 1)
      out.rate = out.rate.value_or(0) + mean(results[1]).array().item() / batches;
  }
  return out;
}

Outcome learn(Learner& learner, const Task& task, Optimizer optimizer, int batches) {
  StateDict grads = fit(learner, task, optimizer, batches);
  Outcome out = evaluate(learner, task);
  out.grads = std::move(grads);
  return out;
}

std::vector<std::uint64_t> seeds() {
  const char* given = std::getenv("JUDGE_FIRST_SEED");
  const std::uint64_t first = given ? std::stoull(given) : 0;
  return {first, first + 1, first + 2};
}

int run(const std::function<Outcome(std::uint64_t seed)>& train) {
  int bad = 0;
  for (const std::uint64_t seed : seeds()) bad += report("", seed, train(seed));
  return bad > 0 ? 1 : 0;
}

int run(const std::vector<Algorithm>& rules,
        const std::function<Outcome(std::uint64_t seed, const Algorithm& rule)>& train) {
  int bad = 0;
  for (const Algorithm& rule : rules)
    for (const std::uint64_t seed : seeds())
      bad += report(rule.name + ", ", seed, train(seed, rule));
  return bad > 0 ? 1 : 0;
}

}  // namespace judge
