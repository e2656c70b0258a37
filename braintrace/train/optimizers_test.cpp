// SPDX-License-Identifier: Apache-2.0
// Optimisers against recorded trajectories and closed-form steps; schedules; state.
#include "braintrace/train/optimizers.h"

#include <cmath>
#include <optional>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/array/rng.h"
#include "braintrace/nn/linear.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/every_target.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::optimizers_test {
namespace {

using nlohmann::json;
using testing::check_close;

const json& golden() {
  static const json file = testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json");
  return file["optim"];
}

Array row(const json& j, DType dtype = DType::f64) {
  const auto values = j.get<std::vector<double>>();
  return array({static_cast<std::int64_t>(values.size())}, values, dtype);
}

void check_trajectory(const char* name, const UpdateRule& rule, DType dtype,
                      double tolerance) {
  Optimizer opt(rule);
  StateDict w = {{"w", row(golden()["w0"], dtype)}};
  for (std::size_t t = 0; t < golden()["grads"].size(); ++t) {
    w = opt.update(w, {{"w", row(golden()["grads"][t], dtype)}});
    check_close(name, w.at("w").astype(DType::f64), row(golden()["traj"][name][t]),
                tolerance);
  }
}

const std::vector<std::pair<const char*, UpdateRule>>& recorded() {
  static const std::vector<std::pair<const char*, UpdateRule>> rules = {
      {"SGD", SGD{.lr = 0.1}},
      {"SGD_mom", SGD{.lr = 0.1, .momentum = 0.9}},
      {"Momentum", SGD{.lr = 0.1, .momentum = 0.9}},
      {"MomentumNesterov", SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true}},
      {"Adam", Adam{.lr = 0.1}},
      {"Adam_eps0.1", Adam{.lr = 0.1, .eps = 0.1}},
      {"Adam_wd", Adam{.lr = 0.1, .weight_decay = 0.01}},
      {"AdamW", AdamW{.lr = 0.1}},
      {"RMSprop", RMSprop{.lr = 0.1}},
  };
  return rules;
}

StateDict one(double v) { return {{"w", array({v}, DType::f64)}}; }

double step_from(Optimizer& opt, double w, double g) {
  return opt.update(one(w), one(g)).at("w").item();
}

}  // namespace

TEST_CASE("every instruction set moves weights to the same bits") {
  std::vector<UpdateRule> rules = {Lion{.lr = 0.1, .weight_decay = 0.1},
                                   RMSprop{.lr = 0.1, .momentum = 0.5, .centered = true},
                                   Adam{.lr = 0.1, .amsgrad = true}};
  for (const auto& [name, rule] : recorded()) rules.push_back(rule);
  for (const UpdateRule& rule : rules)
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(rule.index());
      std::optional<Array> want;
      testing::on_every_target([&](const std::string& target) {
        INFO(target);
        Optimizer opt(rule);
        StateDict w = {{"w", random_normal(rng_key(1), {1037}, dtype)}};
        for (std::uint64_t t = 0; t < 3; ++t)
          w = opt.update(w, {{"w", random_normal(rng_key(2 + t), {1037}, dtype)}});
        if (!want) want = w.at("w");
        CHECK(w.at("w") == *want);
      });
    }
}

TEST_CASE("optimisers reproduce recorded trajectories") {
  for (const auto& [name, rule] : recorded()) {
    check_trajectory(name, rule, DType::f64, tol::f64_golden);
    check_trajectory(name, rule, DType::f32, tol::golden);
  }
  CHECK(recorded().size() == golden()["traj"].size());
}

TEST_CASE("Lion steps by the sign of the mixed gradient") {
  Optimizer opt(Lion{.lr = 0.1, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.5});
  CHECK(step_from(opt, 1, 4) == doctest::Approx(1 - 0.1 * (1 + 0.5)));     // m = 1
  CHECK(step_from(opt, 1, -0.5) == doctest::Approx(1 - 0.1 * (1 + 0.5)));  // 0.25 > 0
  CHECK(step_from(opt, 1, -4) == doctest::Approx(1 - 0.1 * (-1 + 0.5)));
}

TEST_CASE("a gradient that is no number shows in the weights of every rule") {
  const double nan = std::nan("");
  const std::vector<UpdateRule> rules = {
      SGD{}, Adam{}, Adam{.amsgrad = true}, AdamW{}, RMSprop{.centered = true}, Lion{}};
  for (const UpdateRule& rule : rules)
    for (const std::optional<double> limit : {std::optional<double>(), {1.0}}) {
      Optimizer plain(rule), norm(rule, {.clip_norm = limit}),
          value(rule, {.clip_value = limit});
      for (Optimizer* o : {&plain, &norm, &value})
        CHECK(std::isnan(step_from(*o, 1, nan)));
    }
}

TEST_CASE("RMSprop centres and keeps momentum") {
  Optimizer opt(
      RMSprop{.lr = 1, .alpha = 0.5, .eps = 0, .momentum = 0.5, .centered = true});
  // v = 2, mean = 1: g / sqrt(2 - 1) = 2
  CHECK(step_from(opt, 0, 2) == doctest::Approx(-2));
  // v = 1 + 8 = 9, mean = 0.5 + 2 = 2.5: 4 / sqrt(2.75) + 0.5 * 2
  CHECK(step_from(opt, 0, 4) == doctest::Approx(-(4 / std::sqrt(2.75) + 1)));
}

TEST_CASE("AMSGrad divides by the largest power so far") {
  Optimizer opt(Adam{.lr = 1, .beta1 = 0, .beta2 = 0.5, .eps = 0, .amsgrad = true});
  CHECK(step_from(opt, 0, 2) == doctest::Approx(-1));
  // v = 1 + 0.125 = 1.125, corrected 1.5; the largest stays 4.
  CHECK(step_from(opt, 0, 0.5) == doctest::Approx(-0.25));
}

TEST_CASE("weight decay of SGD is added to the gradient") {
  Optimizer opt(SGD{.lr = 0.5, .weight_decay = 0.1});
  CHECK(step_from(opt, 2, 1) == doctest::Approx(2 - 0.5 * (1 + 0.2)));
}

TEST_CASE("an optimiser clips by norm, then by value") {
  Optimizer opt(SGD{.lr = 1}, {.clip_norm = 5, .clip_value = 3.5});
  const StateDict w = {{"a", zeros({2}, DType::f64)}};
  const Array got = opt.update(w, {{"a", array({6, 8}, DType::f64)}}).at("a");
  check_close("clipped", got, array({-6 * 5 / (10 + 1e-6), -3.5}, DType::f64), tol::f64);
}

TEST_CASE("a model is updated in place, parameters without gradient stay") {
  nn::Linear m(2, 1, {.w_init = nn::init::constant(1)});
  init_all_states(m);
  Optimizer opt(SGD{.lr = 0.5});
  opt.update(m, {{"weight/weight", full({2, 1}, 2)}});
  CHECK(state_dict(m).at("weight/weight") == zeros({2, 1}));
  CHECK(state_dict(m).at("weight/bias") == zeros({1}));
}

TEST_CASE("an attached model moves as a given one, with and without clipping") {
  const StateDict grads = {{"weight/bias", full({3}, 2)},
                           {"weight/weight", full({2, 3}, 3)}};
  for (const OptimizerOptions& o :
       {OptimizerOptions{}, OptimizerOptions{.clip_norm = 1, .clip_value = 0.5}}) {
    nn::Linear a(2, 3), b(2, 3);
    init_all_states(a, {.seed = 4});
    init_all_states(b, {.seed = 4});
    Optimizer given(Adam{.lr = 0.1}, o), attached(Adam{.lr = 0.1}, o);
    CHECK_THROWS_WITH_AS(attached.update(grads),
                         "Optimizer::update: no model; call attach(model) first",
                         UserError);
    attached.attach(b);
    const Array before = state_dict(b).at("weight/weight");
    for (int t = 0; t < 3; ++t) {
      given.update(a, grads);
      attached.update(grads);
    }
    CHECK(state_dict(a) == state_dict(b));
    CHECK(given.state_dict() == attached.state_dict());
    CHECK_FALSE(before == state_dict(b).at("weight/weight"));
    CHECK_THROWS_WITH_AS(attached.update({{"weight/nothing", full({3}, 2)}}),
                         "Optimizer::update: there is no parameter 'weight/nothing'",
                         UserError);
  }
}

TEST_CASE("several threads move large parameters as one does") {
  const StateDict grads = {
      {"weight/bias", random_normal(rng_key(1), {300}, DType::f32)},
      {"weight/weight", random_normal(rng_key(2), {200, 300}, DType::f32)}};
  for (const UpdateRule& rule :
       {UpdateRule(SGD{.momentum = 0.9, .nesterov = true, .weight_decay = 0.1}),
        UpdateRule(Adam{.amsgrad = true}), UpdateRule(AdamW{}),
        UpdateRule(RMSprop{.momentum = 0.5, .centered = true}), UpdateRule(Lion{})}) {
    nn::Linear a(200, 300), b(200, 300);
    init_all_states(a, {.seed = 4});
    init_all_states(b, {.seed = 4});
    Optimizer one_thread(rule), four_threads(rule);
    one_thread.attach(a);
    four_threads.attach(b, make_pool(4));
    for (int t = 0; t < 3; ++t) {
      one_thread.update(grads);
      four_threads.update(grads);
    }
    CHECK(state_dict(a) == state_dict(b));
    CHECK(one_thread.state_dict() == four_threads.state_dict());
  }
}

TEST_CASE("moments below the normal numbers are the same at any number of threads") {
  const StateDict grads = {{"weight/weight", full({200, 300}, 1e-21)}};
  nn::Linear a(200, 300), b(200, 300);
  init_all_states(a, {.seed = 4});
  init_all_states(b, {.seed = 4});
  Optimizer one_thread(Adam{}), four_threads(Adam{});
  one_thread.attach(a);
  four_threads.attach(b, make_pool(4));
  for (int t = 0; t < 20; ++t) {
    one_thread.update(grads);
    four_threads.update(grads);
  }
  CHECK(one_thread.state_dict().at("v/weight/weight").at(0) > 0);
  CHECK(one_thread.state_dict() == four_threads.state_dict());
}

TEST_CASE("saved optimiser state resumes exactly") {
  for (const auto& [name, rule] : recorded()) {
    Optimizer whole(rule), first(rule), second(rule);
    StateDict a = one(1), b = one(1);
    for (int t = 0; t < 4; ++t) {
      const StateDict g = one(0.3 * t - 0.4);
      a = whole.update(a, g);
      if (t == 2) second.load_state_dict(first.state_dict());
      b = (t < 2 ? first : second).update(b, g);
    }
    CHECK_MESSAGE(a == b, std::string(name));
  }
}

TEST_CASE("state of another rule is refused by both names and changes nothing") {
  const std::pair<const char*, UpdateRule> rules[] = {
      {"SGD", SGD{}},          {"SGD(m)", SGD{.momentum = 0.9}},
      {"Adam(m,v)", Adam{}},   {"Adam(m,v,v_max)", Adam{.amsgrad = true}},
      {"AdamW(m,v)", AdamW{}}, {"RMSprop(v)", RMSprop{}},
      {"Lion(m)", Lion{}}};
  for (const auto& [from, writer] : rules)
    for (const auto& [to, reader] : rules) {
      Optimizer written(writer), given(reader);
      written.update(one(1), one(0.5));
      if (from == to) {
        CHECK_NOTHROW(given.load_state_dict(written.state_dict()));
        continue;
      }
      const std::string message = fmt::format(
          "Optimizer::load_state_dict: the state was written by {}, this "
          "optimiser is {}",
          from, to);
      CHECK_THROWS_WITH_AS(given.load_state_dict(written.state_dict()), message.c_str(),
                           UserError);
      CHECK(given.num_updates() == 0);
    }
}

TEST_CASE("another learning rate takes the state of the rule") {
  Optimizer written(Adam{.lr = 0.1}), given(Adam{.lr = 0.2});
  written.update(one(1), one(0.5));
  given.load_state_dict(written.state_dict());
  CHECK(given.num_updates() == 1);
  CHECK(given.learning_rate() == 0.2);
}

TEST_CASE("state that does not name its rule must have the moments of it") {
  Optimizer adam(Adam{});
  adam.update(one(1), one(0.5));
  StateDict state = adam.state_dict();
  state.erase("rule/Adam(m,v)");
  CHECK_NOTHROW(Optimizer(AdamW{}).load_state_dict(state));
  CHECK_THROWS_WITH_AS(Optimizer(SGD{}).load_state_dict(state),
                       doctest::Contains("is no moment of SGD"), UserError);
  CHECK_THROWS_WITH_AS(Optimizer(Adam{.amsgrad = true}).load_state_dict(state),
                       doctest::Contains("Adam(m,v,v_max) needs 'v_max/"), UserError);
}

TEST_CASE("learning rates follow their schedule, by update or by hand") {
  Optimizer opt(SGD{}, {.schedule = schedule::step(1, 2, 0.5)});
  for (const double rate : {1.0, 1.0, 0.5, 0.5, 0.25}) {
    CHECK(opt.learning_rate() == rate);
    step_from(opt, 0, 1);
  }
  Optimizer manual(SGD{},
                   {.schedule = schedule::step(1, 1, 0.5), .manual_schedule = true});
  step_from(manual, 0, 1);
  CHECK(manual.learning_rate() == 1);
  manual.advance_schedule();
  CHECK(manual.learning_rate() == 0.5);
}

TEST_CASE("schedules have their closed forms") {
  CHECK(schedule::constant(0.3)(77) == 0.3);
  const Schedule multi = schedule::multistep(1, {2, 4}, 0.1);
  CHECK(multi(1) == 1);
  CHECK(multi(2) == doctest::Approx(0.1));
  CHECK(multi(4) == doctest::Approx(0.01));
  CHECK(schedule::exponential(2, 10, 0.5)(5) == doctest::Approx(2 * std::sqrt(0.5)));
  const Schedule cosine = schedule::cosine(1, 10, 0.2);
  CHECK(cosine(0) == doctest::Approx(1));
  CHECK(cosine(5) == doctest::Approx(0.6));
  CHECK(cosine(10) == doctest::Approx(0.2));
  CHECK(cosine(11) == doctest::Approx(0.2));
  const Schedule poly = schedule::polynomial(1, 10, 2, 0.5);
  CHECK(poly(5) == doctest::Approx(0.5 + 0.5 * 0.25));
  CHECK(poly(20) == doctest::Approx(0.5));
  const Schedule warm = schedule::warmup(4, schedule::step(1, 2, 0.5));
  CHECK(warm(0) == doctest::Approx(0.25));
  CHECK(warm(3) == doctest::Approx(1));
  CHECK(warm(4) == doctest::Approx(1));
  CHECK(warm(6) == doctest::Approx(0.5));
}

TEST_CASE("optimisers and schedules refuse bad arguments") {
  CHECK_THROWS_WITH_AS(Optimizer(SGD{.lr = -1}),
                       "SGD: lr must be >= 0 and finite, got -1", UserError);
  CHECK_THROWS_WITH_AS(Optimizer(SGD{.nesterov = true}),
                       "SGD: nesterov needs momentum > 0, got 0", UserError);
  CHECK_THROWS_WITH_AS(Optimizer(Adam{.beta2 = 1}),
                       "Adam: beta2 must lie in [0, 1), got 1", UserError);
  CHECK_THROWS_WITH_AS(Optimizer(SGD{}, {.clip_norm = 0}),
                       "Optimizer: clipping limits must be > 0, got 0", UserError);
  CHECK_THROWS_WITH_AS(schedule::step(1, 0), "schedule::step: steps must be >= 1, got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(schedule::multistep(1, {4, 2}),
                       "schedule::multistep: milestones must ascend, got 4, 2",
                       UserError);
}

TEST_CASE("a bad gradient changes nothing") {
  Optimizer opt(SGD{.lr = 1, .momentum = 0.9});
  const StateDict w = {{"a", zeros({2})}, {"b", zeros({2})}};
  CHECK_THROWS_WITH_AS(opt.update(w, {{"a", ones({2})}, {"c", ones({2})}}),
                       "Optimizer::update: there is no parameter 'c'", UserError);
  CHECK_THROWS_WITH_AS(opt.update(w, {{"a", ones({2})}, {"b", ones({3})}}),
                       "Optimizer::update: 'b' is [2], its gradient [3]", UserError);
  CHECK(opt.num_updates() == 0);
  CHECK(opt.state_dict().size() == 3);
  CHECK_THROWS_WITH_AS(opt.load_state_dict({{"updates", scalar(1)}}),
                       "Optimizer::load_state_dict: 'schedule' must be one count >= 0",
                       UserError);
}

}  // namespace braintrace::optimizers_test
