// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/etrace_vmap.h"

#include <doctest/doctest.h>

#include "braintrace/algo/algorithm_aliases.h"
#include "braintrace/algo/algorithm_names.h"
#include "braintrace/base/certificate.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
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

GradResult learn(Learner& l, const GradOptions& options = {}) {
  return l.etrace_grad(
      numbers({6, 2, 3}, 1), numbers({6, 2, 4}, 2),
      [&](const Value& x, const Value& y) { return mse(l(x), y); }, options);
}

CertificateData certificate(Learner& l, std::int64_t window) {
  return l.certificate(
      numbers({6, 2, 3}, 1), numbers({6, 2, 4}, 2),
      [&](const Value& x, const Value& y) { return mse(l(x), y); }, window);
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

TEST_CASE("BPTT of lanes is that of a batch") {
  const Array mask = array({6}, {1, 0, 1, 1, 0, 1}, DType::f64);
  const std::pair<Algorithm, GradOptions> cases[] = {{BPTT{}, {}},
                                                     {BPTT{}, {.window = 1}},
                                                     {BPTT{}, {.window = 2}},
                                                     {BPTT{}, {.mask = mask}},
                                                     {BPTT{.segments = 3}, {}},
                                                     {BPTT{.segments = 0}, {}}};
  for (const auto& [rule, o] : cases) {
    const auto one = nn::build_model(kGru), other = nn::build_model(kGru);
    const LearnerOptions f64{.batch_size = 2, .seed = 4, .dtype = DType::f64};
    LearnerOptions mapped = f64;
    mapped.vmap = true;
    Learner lanes = compile(*one, rule, numbers({2, 3}, 3), mapped);
    Learner batched = compile(*other, rule, numbers({2, 3}, 3), f64);
    const GradResult a = learn(lanes, o), b = learn(batched, o);
    CHECK(a.losses.to_doubles() == b.losses.to_doubles());
    REQUIRE(a.grads.size() == b.grads.size());
    for (const auto& [leaf, g] : b.grads)
      check_close(leaf, a.grads.at(leaf), g, tol::f64);
    const StateDict x = state_dict(*one), y = state_dict(*other);
    for (const auto& [leaf, v] : y) check_close(leaf, x.at(leaf), v, tol::f64);
  }
}

TEST_CASE("certificates of lanes are those of a batch") {
  for (const Algorithm& rule :
       {Algorithm(D_RTRL{}), Algorithm(pp_prop{.decay_or_rank = 0.9}), Algorithm(BPTT{}),
        Algorithm(D_RTRL{.vjp_method = VjpMethod::multi_step})}) {
    CAPTURE(rule.name);
    const auto one = nn::build_model(kGru), other = nn::build_model(kGru);
    const LearnerOptions f64{.batch_size = 2, .seed = 4, .dtype = DType::f64};
    LearnerOptions mapped = f64;
    mapped.vmap = true;
    Learner lanes = compile(*one, rule, numbers({2, 3}, 3), mapped);
    Learner batched = compile(*other, rule, numbers({2, 3}, 3), f64);
    const StateDict before = state_dict(*one);
    // Multi-step rules have another gradient in windows, and are refused there.
    const bool free = rule.vjp_method == VjpMethod::single_step;
    const CertificateData a = certificate(lanes, free ? 4 : 1),
                          b = certificate(batched, 1);
    if (!free && rule.engine != Engine::bptt)
      CHECK_THROWS_AS(certificate(lanes, 4), UserError);
    CHECK(a.window == b.window);  // lanes know single steps alone
    CHECK(a.loss == doctest::Approx(b.loss).epsilon(tol::f64));
    REQUIRE(a.rows.size() == b.rows.size());
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
      const CertificateRow &x = a.rows[i], &y = b.rows[i];
      CAPTURE(x.parameter);
      CHECK(x.parameter == y.parameter);
      CHECK(x.verdict == y.verdict);
      CHECK(x.cosine == doctest::Approx(y.cosine).epsilon(tol::f64));
      CHECK(x.error == doctest::Approx(y.error).epsilon(tol::f64));
      CHECK(x.bptt_norm == doctest::Approx(y.bptt_norm).epsilon(tol::f64));
    }
    REQUIRE(a.states.size() == b.states.size());
    CHECK(a.states[0].change == doctest::Approx(b.states[0].change).epsilon(tol::f64));
    CHECK(a.holds(tol::f64));
    CHECK(state_dict(*one) == before);
    CHECK(lanes.running_index() == 0);
  }
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
