// SPDX-License-Identifier: Apache-2.0
// The models of recorded runs in the default mode.
#include <fmt/format.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/parity_impl.h"
#include "braintrace/testing/sound.h"
#include "braintrace/train/losses.h"

namespace braintrace::testing {
namespace {

constexpr std::int64_t kSteps = 8;  // recorded sequences start again when they end

SoundSubject subject_of(const GoldenCase& c, Module& m) {
  SoundSubject s{.model = &m};
  if (c.mode != GoldenMode::none) s.options.batch_size = c.batch;  // lanes as a batch
  s.options.dtype = DType::f64;
  s.options.graph.on_refused = OnRefused::freeze;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    s.inputs.push_back(
        internal::in_dtype(row(c.inputs, t % c.steps), DType::f64).contiguous());
    const Array target = row(c.targets, t % c.steps).contiguous();
    s.targets.push_back(c.loss == "mse" ? target.astype(DType::f64)
                                        : target.astype(DType::i32));
  }
  s.loss = [mse = c.loss == "mse"](const Value& y, const Value& target) {
    return mse ? mean(square(y - target)) : softmax_cross_entropy(y, target);
  };
  s.load = [&c, &m] { internal::load(c, m, DType::f64); };
  return s;
}

}  // namespace

SoundResult check_sound_case(const std::string& name, const std::string& text) {
  SoundResult r{.name = name};
  try {
    const GoldenCase c = parse_golden(name, text);
    const std::unique_ptr<Module> m = nn::build_model(c.text);
    const SoundSubject s = subject_of(c, *m);
    r = check_sound(name, s);
    if (r.passed() && !r.live && r.counts.approximate + r.counts.dense > 0)
      r.failure = "every trace is zero: the comparison says nothing";
    const SoundResult rules = check_rules(name, s, 5, 3);
    if (r.failure.empty()) r.failure = rules.failure;
    r.worst = std::max(r.worst, rules.worst);
    r.notes.insert(r.notes.end(), rules.notes.begin(), rules.notes.end());
  } catch (const std::exception& e) {
    r.failure = e.what();
  }
  return r;
}

}  // namespace braintrace::testing
