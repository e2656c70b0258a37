// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/etrace_vmap.h"

#include <doctest/doctest.h>

#include "braintrace/algo/algorithm_aliases.h"
#include "braintrace/algo/algorithm_names.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/train/losses.h"

namespace etrace_vmap_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr const char* kGru = R"({"model": {"kind": "layer", "class": "GRUCell",
    "args": {"in_size": 3, "out_size": 4}}})";

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

GradResult learn(Learner& l) {
  return l.etrace_grad(numbers({6, 2, 3}, 1), numbers({6, 2, 4}, 2),
                       [&](const Value& x, const Value& y) { return mse(l(x), y); });
}

}  // namespace

TEST_CASE("lanes under their name give the gradients and traces of a batch") {
  const auto one = nn::build_model(kGru), other = nn::build_model(kGru);
  const LearnerOptions f64{.seed = 4, .dtype = DType::f64};
  ETraceVmap lanes(*one, ParamDim{}, {numbers({2, 3}, 3)}, 2, f64);
  LearnerOptions batch = f64;
  batch.batch_size = 2;
  Learner batched = compile(*other, D_RTRL{}, numbers({2, 3}, 3), batch);
  const GradResult a = learn(lanes), b = learn(batched);
  for (const auto& [leaf, g] : b.grads) check_close(leaf, a.grads.at(leaf), g, 1e-10);
  for (const TraceView& v : batched.etraces()) {
    if (v.slot.kind != "bwg") continue;  // dense ones have their samples further inside
    bool found = false;
    for (const TraceView& w : lanes.etraces()) {
      if (w.slot.name() != v.slot.name()) continue;
      found = true;
      check_close(v.slot.name(), w.value.reshaped(v.value.shape()), v.value, 1e-10);
    }
    CHECK(found);
  }
  CHECK(lanes.num_lanes() == 2);
  CHECK(&lanes.module() == one.get());
}

TEST_CASE("lanes must be there and agree with a batch size that is given") {
  const auto m = nn::build_model(kGru);
  const auto make = [&](std::int64_t n, const LearnerOptions& o) {
    ETraceVmap(*m, D_RTRL{}, {zeros({2, 3})}, n, o);
  };
  CHECK_THROWS_WITH_AS(make(0, {}), "ETraceVmap: lanes must be >= 1, got 0", UserError);
  CHECK_THROWS_WITH_AS(make(2, {.batch_size = 3}),
                       "ETraceVmap: 2 lanes, but a batch_size of 3", UserError);
}

TEST_CASE("base classes of the reference are presets under other names") {
  const auto named = [](const char* text) { return algorithm_from_json(text); };
  CHECK(named(R"({"class": "ParamDimVjpAlgorithm"})") == Algorithm(ParamDim{}));
  CHECK(named(R"({"class": "IODimVjpAlgorithm", "args": {"decay_or_rank": 0.9}})") ==
        Algorithm(IODim{.decay_or_rank = 0.9}));
  CHECK(named(R"({"class": "RandomProjection"})") == Algorithm(RandomProjection{}));
  CHECK(named(R"({"class": "HybridDimVjpAlgorithm", "args": {"decay_or_rank": 3}})") ==
        Algorithm(HybridDim{.decay_or_rank = 3}));
}

}  // namespace etrace_vmap_test
