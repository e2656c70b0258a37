// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/testing/sound_impl.h"

namespace braintrace::testing::internal {
namespace {

constexpr double kRelative = 1e-6;  // of the largest entry of the leaf
constexpr double kAbsolute = 1e-9;  // of the largest entry of all leaves

double largest(const Array& a) {
  double most = 0;
  for (double v : a.to_doubles()) most = std::max(most, std::abs(v));
  return most;
}

// The largest difference as a share of what is allowed.
double share(const Array& got, const Array& want, double overall) {
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  const double allowed = kRelative * largest(want) + kAbsolute * std::max(overall, 1e-6);
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d / allowed);
  }
  return a.size() == b.size() ? most : INFINITY;
}

}  // namespace

double largest(const StateDict& d) {
  double most = 0;
  for (const auto& [leaf, a] : d) most = std::max(most, largest(a));
  return most;
}

bool is_of(const std::string& leaf, const Path& parameter) {
  const std::string p = to_slashes(parameter);
  return leaf == p || leaf.starts_with(p + "/");
}

SoundBench::SoundBench(const SoundSubject& s)
    : subject_(s), learner_(make(D_RTRL{})), start_(graph().module_info.step) {}

Learner SoundBench::make(const Algorithm& a, History history) const {
  LearnerOptions o = subject_.options;
  o.learning.history = history;
  Learner l(*subject_.model, a, {subject_.inputs[0]}, o);
  if (subject_.load) subject_.load();
  return l;
}

StateDict SoundBench::online(Learner& l, std::int64_t steps, std::int64_t window) const {
  start_();
  l.reset_state();
  const SequenceSource source{
      steps, [&](std::int64_t t) {
        const auto i = static_cast<std::size_t>(t);
        return std::vector{subject_.inputs[i], subject_.targets[i]};
      }};
  const auto loss = [&](const Values& in) {
    return LossResult{.loss = subject_.loss(l(in[0]), in[1]), .results = {}};
  };
  return l.etrace_grad(source, loss, {.window = window, .reduction = Reduction::sum})
      .grads;
}

std::vector<StepInputs> SoundBench::sequence(std::int64_t steps) const {
  std::vector<StepInputs> out;
  for (std::int64_t t = 0; t < steps; ++t)
    out.push_back({subject_.inputs[static_cast<std::size_t>(t)]});
  return out;
}

StepLoss SoundBench::step_loss() const {
  return [this](std::size_t t, const Values& y) {
    return subject_.loss(y[0], subject_.targets[t]);
  };
}

StateDict SoundBench::bptt(std::int64_t steps) const {
  start_();
  return testing::bptt(*subject_.model, sequence(steps), step_loss()).grads;
}

bool SoundBench::is_refused(const std::string& leaf) const {
  const auto& all = graph().verdicts;
  return std::any_of(all.begin(), all.end(), [&](const ParameterVerdict& v) {
    return v.verdict == Verdict::refused && is_of(leaf, v.path);
  });
}

void SoundBench::compare(const std::string& what, const StateDict& got,
                         const StateDict& want, const Wanted& wanted) {
  const double overall = largest(want);
  for (const auto& [leaf, w] : want) {
    if (is_refused(leaf) || (wanted && !wanted(leaf))) continue;
    const auto it = got.find(leaf);
    if (it == got.end()) {
      fail(fmt::format("{}: no gradient of {}", what, leaf));
      continue;
    }
    const double d = share(it->second, w, overall);
    result.worst = std::max(result.worst, d);
    if (d > 1)
      fail(fmt::format("{}: {} is off by {:.2g} of its largest entry {:.2g}", what, leaf,
                       d * kRelative, largest(w)));
  }
}

void SoundBench::fail(const std::string& what) {
  if (result.failure.empty())
    result.failure = what;
  else
    result.notes.push_back(what);
}

}  // namespace braintrace::testing::internal
