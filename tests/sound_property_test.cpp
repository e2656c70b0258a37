// SPDX-License-Identifier: Apache-2.0
// Online gradients of random models against back-propagation, of the whole program for
// parameters called exact and of the cut program for all. A failure prints the model.
#include <doctest/doctest.h>

#include "braintrace/testing/random_model.h"
#include "braintrace/testing/sound.h"

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// Unoptimised builds check a sample.
#ifdef NDEBUG
constexpr std::int64_t kModels = 1000, kModelsOfRules = 40;
#else
constexpr std::int64_t kModels = 100, kModelsOfRules = 4;
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
