// SPDX-License-Identifier: Apache-2.0
// history = deep: past credit crosses whole steps inside a window.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/online_trial.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/metrics.h"

namespace window_deep_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

OnlineTrial trial(const std::string& model, Shape input, std::int64_t window,
                  History history) {
  OnlineTrial t{.model = model, .input = std::move(input), .steps = 6, .window = window};
  t.options.learning.history = history;
  return t;
}

const std::string kLeaky =
    R"({"model": {"kind": "leaky_linear", "n_in": 3, "n_rec": 4, "leak": 0.9}})";

// Two GRU layers and a readout.
struct TwoGru : nn::Module {
  nn::GRUCell first, second;
  nn::Linear out;
  TwoGru(std::int64_t in, std::int64_t n, std::int64_t classes)
      : first(in, n), second(n, n), out(n, classes) {
    add("first", first);
    add("second", second);
    add("out", out);
  }
  Value update(Value x) override { return out(second(first(x))); }
};

// The input of a few steps ago is wanted at every step.
struct DelayTask {
  static constexpr std::int64_t size = 3, delay = 3, steps = 16, batch = 8, hidden = 16;
  Array xs, ys;
  explicit DelayTask(std::uint64_t seed)
      : xs(random_normal(rng_key(seed), {steps, batch, size}, DType::f64)),
        ys(zeros({steps, batch, size}, DType::f64)) {
    const std::vector<double> x = xs.to_doubles();
    std::copy(x.begin(), x.end() - delay * batch * size,
              ys.mutable_data<double>() + delay * batch * size);
  }

  StateDict gradient(const Algorithm& algorithm, LearningOptions learning,
                     std::uint64_t seed) const {
    TwoGru model(size, hidden, size);
    LearnerOptions o{.batch_size = batch, .seed = seed, .dtype = DType::f64};
    o.learning = learning;
    o.graph.weight_paths = WeightPaths::local;  // as at sizes where dense does not pay
    Learner l = compile(model, algorithm, row(xs, 0), o);
    return l
        .etrace_grad(xs, ys, [&](const Value& x, const Value& y) { return mse(l(x), y); },
                     {.window = steps, .reduction = Reduction::sum})
        .grads;
  }
};

}  // namespace

TEST_CASE("a window of one step is as deep as direct") {
  const StateDict direct =
      trial("two_layer_gru", {10}, 1, History::direct).online(D_RTRL{});
  const StateDict deep = trial("two_layer_gru", {10}, 1, History::deep).online(D_RTRL{});
  CHECK(relative_distance(deep, direct) < tol::f64_golden);
  const StateDict wide = trial("two_layer_gru", {10}, 3, History::deep).online(D_RTRL{});
  CHECK(relative_distance(wide, direct) > 1e-3);
}

TEST_CASE("without cuts deep is direct is back-propagation, for every window") {
  const StateDict bptt = trial(kLeaky, {3}, 1, History::direct).bptt();
  for (const std::int64_t window : {1, 2, 4, 6})
    for (const History h : {History::direct, History::deep}) {
      CAPTURE(window);
      CHECK(relative_distance(trial(kLeaky, {3}, window, h).online(D_RTRL{}), bptt) <
            tol::f64_golden);
    }
}

TEST_CASE("deep history comes closer to back-propagation than direct on a delay task") {
  std::map<std::string, double> direct, deep;
  const int seeds = 5;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto key = static_cast<std::uint64_t>(seed);
    const DelayTask task(key + 100);
    const StateDict bptt = task.gradient(BPTT{}, {}, key);
    for (const auto& [leaf, c] : gradient_cosines(task.gradient(D_RTRL{}, {}, key), bptt))
      direct[leaf] += c / seeds;
    for (const auto& [leaf, c] :
         gradient_cosines(task.gradient(D_RTRL{}, {.history = History::deep}, key), bptt))
      deep[leaf] += c / seeds;
  }
  std::string table;
  for (const auto& [leaf, c] : direct)
    table += fmt::format("{:24} {:.2f} -> {:.2f}\n", leaf, c, deep.at(leaf));
  MESSAGE("cosine to back-propagation, direct -> deep\n" << table);
  for (const auto& [leaf, c] : direct) {
    CAPTURE(leaf);
    const bool named = leaf.starts_with("first/") || leaf.starts_with("second/Wr");
    if (named) CHECK(deep.at(leaf) > c);
  }
  CHECK(deep.at("first/Wr/weight/weight") > direct.at("first/Wr/weight/weight") + 0.3);
}

TEST_CASE("deep history is refused where it has no meaning") {
  const auto refuses = [](const Algorithm& a, const std::string& why,
                          LearnerOptions options = {}) {
    OnlineTrial t = trial(kLeaky, {3}, 2, History::deep);
    options.learning.history = History::deep;
    t.options = options;
    const auto m = t.build();
    CHECK_THROWS_WITH_AS(t.learner(*m, a), doctest::Contains(why.c_str()), UserError);
  };
  refuses(pp_prop{.decay_or_rank = 0.9}, "credit travels back through D");
  refuses(EProp{.kappa_filter_decay = 0.5}, "credit travels back through D");
  refuses(EProp{.feedback = "random", .random_feedback_key = 1}, "symmetric signal");
  refuses(D_RTRL{.vjp_method = VjpMethod::multi_step}, "single-step rules");
  LearnerOptions published;
  published.learning.newest = Newest::trace;
  refuses(D_RTRL{}, "newest = exact", published);
}

}  // namespace window_deep_test
