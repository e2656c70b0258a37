// SPDX-License-Identifier: Apache-2.0
// Exact RTRL against back-propagation through time on every recorded model.
#include <algorithm>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/online_trial.h"
#include "braintrace/testing/parity_impl.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/csv.h"

namespace braintrace::testing::exact_rtrl_test {
namespace {

using internal::in_dtype;
using internal::loss_of;

std::unique_ptr<Module> loaded(const GoldenCase& c) {
  auto m = nn::build_model(c.text);
  InitOptions init{.dtype = DType::f64};
  if (c.mode != GoldenMode::none) init.batch_size = c.batch;
  init_all_states(*m, init);
  internal::load(c, *m, DType::f64);
  return m;
}

StateDict by_bptt(const GoldenCase& c) {
  const auto m = loaded(c);
  const Array xs = in_dtype(c.inputs, DType::f64);
  return bptt(*m, steps_of(xs),
              [&](std::size_t t, const Values& y) {
                const auto k = static_cast<std::int64_t>(t);
                return loss_of(c, y[0], row(c.targets, k)) * c.mask[t];
              })
      .grads;
}

// Several steps in one call need targets that are inputs: cases with squared errors.
StateDict by_rtrl(const GoldenCase& c, std::int64_t chunk) {
  const auto m = nn::build_model(c.text);
  LearnerOptions o{.dtype = DType::f64};
  if (c.mode != GoldenMode::none) o.batch_size = c.batch;
  const Array xs = in_dtype(c.inputs, DType::f64);
  const ExactRTRL rule{.vjp_method =
                           chunk > 1 ? VjpMethod::multi_step : VjpMethod::single_step};
  Learner l = compile(*m, rule, row(xs, 0), o);
  internal::load(c, *m, DType::f64);
  GradOptions g{.window = 1, .reduction = Reduction::sum};
  g.mask = array({c.steps}, c.mask, DType::f64);
  if (chunk > 1) g.chunk_size = chunk;
  const auto loss = [&](const Values& in) {
    if (chunk == 1)
      return LossResult{.loss = mean(square(l(in[0]) - in[1])), .results = {}};
    const Value y = l(MultiStepData{{in[0]}})[0];
    Ints axes = iota_ints(y.rank());
    axes.erase(axes.begin());
    return LossResult{.loss = mean(square(y - in[1]), {.axes = axes}), .results = {}};
  };
  return l.etrace_grad({xs, in_dtype(c.targets, DType::f64)}, loss, g).grads;
}

// One file per model: the first that records gradients by back-propagation.
std::vector<std::pair<std::string, std::string>> models() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens"))
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> seen;
  for (const std::string& f : files) {
    const std::string text = read_file(f);
    if (classify_golden(text) != GoldenKind::golden_case) continue;
    const GoldenCase c = parse_golden(f, text);
    if (c.expected.bptt_grad_sum.empty() || c.mode == GoldenMode::vmap) continue;
    if (c.loss != "mse") continue;
    std::string model = c.kind + (c.batch ? "/b" : "");
    for (const auto& [leaf, w] : c.weights) model += " " + leaf;
    if (seen.insert(model).second) out.emplace_back(f, text);
  }
  return out;
}

}  // namespace

TEST_CASE("exact RTRL is back-propagation through time, step by step, on every model") {
  std::size_t live = 0;
  const auto all = models();
  for (const auto& [file, text] : all) {
    CAPTURE(file);
    const GoldenCase c = parse_golden(file, text);
    const StateDict want = by_bptt(c);
    const StateDict got = by_rtrl(c, 1);
    CHECK(relative_distance(got, want) < tol::f64_golden);
    for (const auto& [leaf, w] : want) live += largest(want, leaf) > 1e-6;
  }
  CHECK(all.size() >= 30);
  CHECK(live >= 80);
}

TEST_CASE("exact RTRL gives the same over windows as step by step") {
  for (const auto& [file, text] : models()) {
    const GoldenCase c = parse_golden(file, text);
    if (c.steps % 2 != 0 || c.batch) continue;
    CAPTURE(file);
    CHECK(relative_distance(by_rtrl(c, 2), by_bptt(c)) < tol::f64_golden);
  }
}

TEST_CASE("exact RTRL has gradients where D_RTRL has dropped the past") {
  const OnlineTrial t{.model = R"({"kind": "tanh_rnn", "n_in": 3, "n_rec": 4})",
                      .input = {3},
                      .batch_size = 2,
                      .steps = 5};
  const StateDict want = t.bptt();
  CHECK(relative_distance(t.online(ExactRTRL{}), want) < tol::f64_golden);
  CHECK(relative_distance(t.online(D_RTRL{}), want) > 1e-3);
  CHECK(largest(want, "win") > 1e-3);
}

}  // namespace braintrace::testing::exact_rtrl_test
