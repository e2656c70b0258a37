// SPDX-License-Identifier: Apache-2.0
// Online gradients of random models against back-propagation, of the whole program for
// parameters called exact and of the cut program for all. A failure prints the model.
#include <doctest/doctest.h>

#include "braintrace/testing/random_model.h"
#include "braintrace/testing/sound.h"
#include "braintrace/train/learner.h"

namespace sound_property_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// Unoptimised builds check a sample.
#ifdef NDEBUG
constexpr std::int64_t kModels = 1000, kModelsOfRules = 40;
constexpr std::uint64_t kCertificates = 240, kOddModels = 60;
#else
constexpr std::int64_t kModels = 100, kModelsOfRules = 4;
constexpr std::uint64_t kCertificates = 40, kOddModels = 8;
#endif

SoundSubject subject_of(RandomModel& m, std::int64_t steps) {
  m.init();
  SoundSubject s{.model = &m};
  s.options.graph = m.tuned({});
  s.options.graph.include_recurrent_mixing = false;
  s.options.graph.sparse_n.reset();
  s.options.graph.on_refused = OnRefused::freeze;
  s.options.dtype = DType::f64;
  s.options.executor = ExecutorKind::interpreter;
  const Shape shape = m.args()[0].shape();
  if (s.options.graph.batched) s.options.batch_size = shape[0];
  for (std::int64_t t = 0; t < steps; ++t) {
    const RngKey key = fold_in(rng_key(17), static_cast<std::uint64_t>(t));
    s.inputs.push_back(random_uniform(key, shape, -1, 1, DType::f64));
    s.targets.push_back(scalar(1 + 0.3 * static_cast<double>(t), DType::f64));
  }
  s.loss = [](const Value& y, const Value& weight) {
    const Value v = astype(y, DType::f64);
    return weight * sum(sin(1.3 * v) + 0.5 * v);
  };
  return s;
}

// Not everything on every model: each check costs programs of its own.
SoundOptions checks_of(std::uint64_t seed) {
  switch (seed % 4) {
    case 0:
      return {.steps = {3}, .window = 2, .deep = false};
    case 1:
      return {.steps = {1, 3}, .window = 0, .deep = false};
    case 2:
      return {.steps = {4}, .window = 2, .deep = true};
    default:
      return {.steps = {3}, .window = 0, .deep = false};
  }
}

}  // namespace

TEST_CASE("random models learn as their cut programs do") {
  SoundCounts counts;
  std::int64_t checked = 0, refused = 0, live = 0;
  for (std::uint64_t seed = 1; checked < kModels; ++seed) {
    RandomModel m(seed);
    SoundResult r;
    try {
      r = check_sound("", subject_of(m, 4), checks_of(seed));
    } catch (const UserError&) {
      ++refused;  // by the compiler: what it refuses is tested with it
      REQUIRE(refused < 2 * kModels);
      continue;
    } catch (const std::exception& e) {
      r.failure = e.what();
    }
    ++checked;
    counts += r.counts;
    live += r.live ? 1 : 0;
    if (!r.passed()) FAIL_CHECK("seed " << seed << ": " << r.failure << "\n" << m.text());
  }
  MESSAGE(checked << " models, " << live << " with living traces, " << refused
                  << " refused; parameters: " << counts.exact << " exact, "
                  << counts.approximate << " direct and approximate, " << counts.dense
                  << " dense, " << counts.local << " local");
  CHECK(counts.exact >= 3 * kModels / 10);
  CHECK(counts.approximate >= 3 * kModels / 10);
  CHECK(counts.dense >= kModels / 20);
  CHECK(counts.local >= kModels / 20);
  CHECK(live >= kModels / 2);
}

TEST_CASE("random models of odd sizes learn as their cut programs do") {
  std::uint64_t checked = 0;
  for (std::uint64_t seed = 1; seed <= kOddModels; ++seed) {
    RandomModel m(seed, {.odd_sizes = true});
    SoundResult r;
    try {
      r = seed % 8 == 0 ? check_rules("", subject_of(m, 3), 3, 2)
                        : check_sound("", subject_of(m, 4), checks_of(seed));
    } catch (const UserError&) {
      continue;
    } catch (const std::exception& e) {
      r.failure = e.what();
    }
    ++checked;
    if (!r.passed()) FAIL_CHECK("seed " << seed << ": " << r.failure << "\n" << m.text());
  }
  CHECK(checked >= kOddModels / 2);
}

TEST_CASE("the output of an op that is a new state also feeds other states") {
  RandomModel m(874, {.odd_sizes = true});
  const SoundResult r = check_sound("", subject_of(m, 4), checks_of(874));
  INFO(m.text());
  CHECK(r.failure == "");
}

TEST_CASE("what certificates of random models call exact is exact") {
  const std::vector<Algorithm> rules = {SnAp{.n = 2},
                                        SnAp{.n = 6},
                                        D_RTRL{},
                                        OSTLRecurrent{},
                                        D_RTRL{.vjp_method = VjpMethod::multi_step},
                                        SnAp{.n = 6, .vjp_method = VjpMethod::multi_step},
                                        pp_prop{.decay_or_rank = 0.9},
                                        Hybrid{.decay_or_rank = 0.9}};
  std::int64_t exact = 0, exact_snap = 0;
  for (std::uint64_t seed = 2000; seed < 2000 + kCertificates; ++seed) {
    RandomModel m(seed);
    const SoundSubject s = subject_of(m, 4);
    const Algorithm& rule = rules[seed % rules.size()];
    CertificateData c;
    try {
      Learner learner = compile(m, rule, s.inputs[0], s.options);
      c = learner.certificate(
          stacked(s.inputs), stacked(s.targets),
          [&](const Value& x, const Value& y) { return s.loss(learner(x), y); });
    } catch (const UserError&) {
      continue;
    }
    for (const CertificateRow& p : c.rows) {
      if (p.verdict != "exact") continue;
      ++exact;
      exact_snap += rule.name == "SnAp";
      if (p.error > 1e-6)
        FAIL_CHECK("seed " << seed << ", " << rule.name << ": " << p.parameter
                           << " is off by " << p.error << "\n"
                           << m.text());
    }
  }
  MESSAGE(exact << " parameters called exact, " << exact_snap << " under SnAp");
  CHECK(exact >= static_cast<std::int64_t>(kCertificates) / 4);
  CHECK(exact_snap >= static_cast<std::int64_t>(kCertificates) / 20);
}

TEST_CASE("random models learn under every rule, in windows as step by step") {
  std::int64_t checked = 0;
  const std::uint64_t first = 50;
  for (std::uint64_t seed = first; checked < kModelsOfRules; ++seed) {
    RandomModel m(seed);
    SoundResult r;
    try {
      r = check_rules("", subject_of(m, 3), 3, 2);
    } catch (const UserError&) {
      REQUIRE(seed < first + 4 * static_cast<std::uint64_t>(kModelsOfRules));
      continue;
    } catch (const std::exception& e) {
      r.failure = e.what();
    }
    ++checked;
    if (!r.passed()) FAIL_CHECK("seed " << seed << ": " << r.failure << "\n" << m.text());
  }
}

}  // namespace sound_property_test
