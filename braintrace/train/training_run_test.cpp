// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/training_run.h"

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/nn/nn.h"
#include "braintrace/nn/sized_model.h"
#include "braintrace/testing/temporary_folder.h"
#include "braintrace/train/tasks.h"

namespace training_run_test {

using namespace braintrace;

namespace {

std::unique_ptr<Module> model_for(const Task& task, const char* name,
                                  std::int64_t units = 16) {
  return nn::build_model(nn::sized_model(
      name,
      {.n_in = task.shape().features, .n_rec = units, .n_out = task.shape().outputs}));
}

// A net with noise of its own, so that keys of random draws count.
struct NoisyNet : Module {
  nn::GRUCell rnn{1, 6};
  nn::Dropout drop{0.8};
  nn::Linear out{6, 1};
  NoisyNet() {
    add("rnn", rnn);
    add("drop", drop);
    add("out", out);
  }
  Value update(Value x) override { return out(drop(rnn(x))); }
};

Task short_integrator() { return integrator_task({.steps = 8}); }

}  // namespace

TEST_CASE("a GRU learns to integrate with D_RTRL, and beats the best constant") {
  const Task task = integrator_task();
  const auto model = model_for(task, "gru");
  TrainingRun run(task, *model, D_RTRL{}, Adam{.lr = 1e-2});
  CHECK(run.train({.updates = 150, .evaluate_every = 75}));
  const RunLog& log = run.log();
  REQUIRE(log.evaluations.size() == 3);  // before, half way, after
  CHECK(log.evaluations[0].update == 0);
  CHECK(log.evaluations[0].loss > log.constant_loss / 2);
  CHECK(log.evaluations[2].loss < log.constant_loss / 10);
  CHECK(log.training.size() == 150);
  CHECK(log.time_steps == 150 * 32 * 25);
}

TEST_CASE("updates at every step learn as well") {
  const Task task = integrator_task();
  const auto model = model_for(task, "gru", 8);
  TrainingRun run(task, *model, D_RTRL{}, Adam{.lr = 4e-3},
                  {.batch = 4, .update = UpdateAt::step});
  run.train({.updates = 40, .evaluate_every = 40});
  CHECK(run.optimizer().num_updates() == 40 * 25);
  CHECK(run.log().evaluations.back().loss < run.log().constant_loss / 4);
}

TEST_CASE("BPTT refuses updates at every step, which would go back one step only") {
  const Task task = integrator_task();
  const auto model = model_for(task, "gru", 8);
  CHECK_THROWS_WITH_AS(
      TrainingRun(task, *model, BPTT{}, Adam{}, {.update = UpdateAt::step}),
      doctest::Contains("BPTT needs whole sequences; with an update at every step it "
                        "would go back one step only. Use update sequence"),
      UserError);
}

TEST_CASE("50 batches, a file and 50 more are 100 batches, bit for bit") {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/run.safetensors";
  for (const UpdateAt at : {UpdateAt::sequence, UpdateAt::step}) {
    const TrainingOptions options{.batch = 3, .update = at};
    const Adam rule{.lr = 1e-2};
    NoisyNet once, first, second;
    TrainingRun whole(short_integrator(), once, D_RTRL{}, rule, options);
    whole.train({.updates = 100});
    TrainingRun half(short_integrator(), first, D_RTRL{}, rule, options);
    half.train({.updates = 50});
    save_checkpoint(file, half.checkpoint());
    CHECK_FALSE(half.checkpoint() == whole.checkpoint());
    TrainingRun rest(short_integrator(), second, D_RTRL{}, rule, options);
    rest.restore(load_checkpoint(file));
    CHECK(rest.updates() == 50);
    rest.train({.updates = 100});
    CHECK(rest.checkpoint() == whole.checkpoint());
  }
}

TEST_CASE("a checkpoint in the middle of a sequence keeps traces, counters and noise") {
  for (const Algorithm& algorithm : std::vector<Algorithm>{
           D_RTRL{}, pp_prop{.decay_or_rank = 0.9}, EProp{.kappa_filter_decay = 0.8},
           UORO{.vjp_method = VjpMethod::single_step}}) {
    const auto steps = [](Learner& l, Optimizer& o, int from, int to) {
      const auto loss = [&](const Values& in) {
        return LossResult{.loss = mean(square(l(in[0]) - in[1])), .results = {}};
      };
      LossHandle handle = l.trace_loss(loss, {zeros({2, 1}), zeros({2, 1})});
      for (int t = from; t < to; ++t) {
        const Array x =
            random_normal(rng_key(static_cast<std::uint64_t>(t)), {2, 1}, DType::f32);
        o.update(l.model(), *l.step_grad({x, x}, handle).gradients);
      }
    };
    NoisyNet a, b, c;
    const LearnerOptions options{.batch_size = 2};
    const SGD rule{.lr = 0.05, .momentum = 0.9};
    Learner whole = compile(a, algorithm, zeros({2, 1}), options);
    Learner half = compile(b, algorithm, zeros({2, 1}), options);
    Learner rest = compile(c, algorithm, zeros({2, 1}), options);
    Optimizer o1(rule), o2(rule), o3(rule);
    steps(whole, o1, 0, 100);
    steps(half, o2, 0, 50);
    const Checkpoint saved = parse_checkpoint(to_bytes(checkpoint_of(half, o2, 50)));
    restore(rest, o3, saved);
    steps(rest, o3, 50, 100);
    CAPTURE(algorithm.name);
    CHECK(checkpoint_of(rest, o3, 100) == checkpoint_of(whole, o1, 100));
    // The traces matter: without them the same weights go elsewhere.
    restore(rest, o3, saved);
    rest.init_etrace_state();
    steps(rest, o3, 50, 100);
    CHECK_FALSE(checkpoint_of(rest, o3, 100).weights ==
                checkpoint_of(whole, o1, 100).weights);
  }
}

TEST_CASE("a checkpoint of something else is refused and changes nothing") {
  NoisyNet a, b;
  TrainingRun run(short_integrator(), a, D_RTRL{}, Adam{}, {.batch = 2});
  run.train({.updates = 2});
  const Checkpoint good = run.checkpoint();
  const auto refused = [&](const char* message, auto&& change) {
    Checkpoint bad = good;
    change(bad);
    CHECK_THROWS_WITH_AS(run.restore(bad), doctest::Contains(message), UserError);
    CHECK(run.checkpoint() == good);
  };
  refused("'rnn/h' is missing", [](Checkpoint& c) { c.states.erase("rnn/h"); });
  refused("'rnn/h' needs f32[2,6], got f32[3,6]", [](Checkpoint& c) {
    c.states["rnn/h"] = zeros({3, 6});
  });
  refused("traces", [](Checkpoint& c) { c.traces.clear(); });
  refused("'updates' must be one count", [](Checkpoint& c) { c.optimizer.clear(); });
  refused("config 'calls'",
          [](Checkpoint& c) { c.config = R"({"algorithm": "D_RTRL"})"; });
  TrainingRun other(short_integrator(), b, pp_prop{.decay_or_rank = 0.9}, Adam{},
                    {.batch = 2});
  CHECK_THROWS_WITH_AS(other.restore(good), doctest::Contains("written by \"D_RTRL\""),
                       UserError);
}

TEST_CASE("a run stops when it is told to, and goes on") {
  NoisyNet model;
  TrainingRun run(short_integrator(), model, D_RTRL{}, Adam{}, {.batch = 2});
  const auto until_three = [](std::int64_t done, const RunLog&) { return done < 3; };
  CHECK_FALSE(run.train({.updates = 10, .on_update = until_three}));
  CHECK(run.updates() == 3);
  CHECK(run.train({.updates = 10}));
  CHECK(run.updates() == 10);
}

TEST_CASE("an evaluation leaves states, mode and keys alone") {
  NoisyNet model;
  const Task task = short_integrator();
  TrainingRun run(task, model, D_RTRL{}, Adam{}, {.batch = 2});
  run.train({.updates = 3});
  const Checkpoint before = run.checkpoint();
  const Evaluation a = evaluate(task, model, {.samples = 20, .batch = 8});
  CHECK(run.checkpoint() == before);
  CHECK(model.training());
  // Without dropout the answer does not depend on the batch size.
  const Evaluation b = evaluate(task, model, {.samples = 20, .batch = 20});
  CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-6));
  CHECK_FALSE(a.accuracy);
  CHECK_FALSE(a.firing_rate);
}

TEST_CASE("an evaluation that ends early leaves states and mode alone") {
  struct Enough {};
  NoisyNet model;
  const Task task = short_integrator();
  TrainingRun run(task, model, D_RTRL{}, Adam{}, {.batch = 2});
  run.train({.updates = 3});
  const Checkpoint before = run.checkpoint();
  std::int64_t pauses = 0;
  evaluate(task, model, {.samples = 4, .batch = 2, .pause = [&] { ++pauses; }});
  const std::int64_t steps = task.shape().steps;
  CHECK(pauses >= 4 + 2 * steps + 2 * steps);  // samples, steps, the best constant
  for (std::int64_t most = 0; most < pauses; most += 3) {
    std::int64_t left = most;
    const Pause pause = [&] {
      if (left-- == 0) throw Enough();
    };
    CHECK_THROWS_AS(evaluate(task, model, {.samples = 4, .batch = 2, .pause = pause}),
                    Enough);
    CHECK(run.checkpoint() == before);
    CHECK(model.training());
  }
}

TEST_CASE("spiking nets report their rate and a raster") {
  const Task task = delayed_match_task({.steps = 20});
  const auto model = model_for(task, "lif", 12);
  const Evaluation e =
      evaluate(task, *model, {.samples = 10, .batch = 5, .raster_units = 8});
  REQUIRE(e.firing_rate);
  REQUIRE(e.rasters.size() == 1);
  CHECK(e.rasters[0].population == "neu");
  CHECK(e.rasters[0].units == 8);
  CHECK(e.rasters[0].steps == 20);
  CHECK_FALSE(e.rasters[0].spikes.empty());
  CHECK(*e.firing_rate > 0.01);
  CHECK(*e.firing_rate < 0.4);
  REQUIRE(e.accuracy);
  CHECK(*e.accuracy <= 1);
}

}  // namespace training_run_test
