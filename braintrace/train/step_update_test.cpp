// SPDX-License-Identifier: Apache-2.0
// Steps that move the parameters by their own gradient: their judge is the gradient and
// the optimiser, one after the other.
#include <functional>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/nn/nn.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/optimizers.h"

namespace step_update_test {

using namespace braintrace;

namespace {

struct Net {
  std::string model;  // JSON, or a name
  Shape input, output;
  bool spikes = false;
  std::function<std::unique_ptr<Module>()> make = {};

  std::unique_ptr<Module> built() const { return make ? make() : nn::build_model(model); }
};

const Net gru{R"({"kind": "sequential", "layers": [
    {"name": "rnn", "class": "GRUCell", "args": {"in_size": 3, "out_size": 7}},
    {"name": "out", "class": "Linear", "args": {"in_size": 7, "out_size": 2}}]})",
              {3},
              {2}};
const Net lstm{R"({"kind": "sequential", "layers": [
    {"name": "rnn", "class": "LSTMCell", "args": {"in_size": 3, "out_size": 21}},
    {"name": "out", "class": "Linear", "args": {"in_size": 21, "out_size": 2}}]})",
               {3},
               {2}};
const Net lif{R"({"kind": "lif_net", "n_in": 5, "n_rec": 9, "n_out": 2, "tau_mem": 20,
    "tau_syn": 10, "tau_out": 10, "V_th": 0.05})",
              {5},
              {2},
              true};
const Net conv{
    R"({"kind": "conv_rnn", "size": 5, "n_rec": 6, "n_out": 2})", {1, 5, 5}, {2}};

// Spikes through a sparse matrix, twice: its gradient is a product at its connections.
struct SparseNet : nn::Module {
  nn::SparseLinear wires;
  nn::LIF neuron;
  nn::LeakyRateReadout out;
  SparseNet()
      : wires(random_structure(11, 11, 4, 1), {.w_init = nn::init::uniform(0, 0.5)}),
        neuron({11}, {.tau = 5}),
        out(11, 2) {
    add("wires", wires);
    add("neuron", neuron);
    add("out", out);
  }
  Value update(Value x) override {
    return out(neuron(x * 3.0 + wires(neuron.get_spike())));
  }
};
const Net sparse{"sparse", {11}, {2}, true, [] { return std::make_unique<SparseNet>(); }};

// A low-rank layer in front of a cell.
struct LowRankNet : nn::Module {
  nn::LoRA low{4, 2, 5};
  nn::MiniGRU rnn{5, 6};
  nn::Linear out{6, 2};
  LowRankNet() {
    add("low", low);
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(low(x))); }
};
const Net low_rank{
    "low rank", {4}, {2}, false, [] { return std::make_unique<LowRankNet>(); }};

// One learner that steps, with a gradient of its own or with the update inside.
struct Run {
  std::unique_ptr<Module> model;
  Learner learner;
  Optimizer optimizer;
  const Net& net;
  std::optional<std::int64_t> batch;
  DType dtype;
  std::optional<LossHandle> loss;

  Run(const Net& n, const Algorithm& rule, const UpdateRule& update,
      const LearnerOptions& options, const OptimizerOptions& limits = {})
      : model(n.built()),
        learner(*model, rule, {zeros(shape(n.input, options.batch_size))}, options),
        optimizer(update, limits),
        net(n),
        batch(options.batch_size),
        dtype(*options.dtype) {}

  static Shape shape(Shape s, std::optional<std::int64_t> batch) {
    if (batch) s.insert(s.begin(), *batch);
    return s;
  }
  std::vector<Array> data(int t) const {
    const RngKey key = fold_in(rng_key(7), static_cast<std::uint64_t>(t));
    Array x = random_normal(key, shape(net.input, batch), dtype);
    if (net.spikes) x = (Value(x) > 0).array().astype(dtype);
    return {x, random_normal(fold_in(key, 1), shape(net.output, batch), dtype)};
  }
  LossHandle& handle() {
    if (!loss)
      loss = learner.trace_loss(
          [&](const Values& in) {
            const Value y = learner(in[0]);
            return LossResult{.loss = mse(y, in[1]), .results = {y}};
          },
          data(0));
    return *loss;
  }
  double step(int t, double weight = 1) {
    const StepGradient g = learner.step_grad(data(t), handle(), weight);
    optimizer.update(*model, *g.gradients);
    return g.loss;
  }
  double update(int t, double weight = 1) {
    const StepGradient g = learner.step_update(data(t), handle(), optimizer, weight);
    CHECK(g.gradients == nullptr);
    REQUIRE(g.results.size() == 1);
    return g.loss;
  }
};

// Both ways through some steps; the parameters, the optimiser and the traces agree.
void compare(Run& apart, Run& inside, double tolerance, int steps = 6) {
  StateDict before;
  for (const auto& [path, w] : state_dict(*apart.model)) {
    const Array copy = (Value(w) + 0).array();
    before.emplace(path, copy);
  }
  for (int t = 0; t < steps; ++t) {
    const double weight = t == 2 ? 0.5 : 1;
    const double want = apart.step(t, weight), got = inside.update(t, weight);
    CHECK(got == doctest::Approx(want).epsilon(10 * tolerance));
  }
  const StateDict want = state_dict(*apart.model), got = state_dict(*inside.model);
  double moved = 0;
  for (const auto& [path, w] : want) {
    CAPTURE(path);
    testing::check_close(path, got.at(path), w, tolerance);
    moved += testing::worst_error(w, before.at(path)).error;
  }
  CHECK(moved > 1e-3);
  const StateDict kept = inside.optimizer.state_dict();
  for (const auto& [name, m] : apart.optimizer.state_dict()) {
    CAPTURE(name);
    testing::check_close(name, kept.at(name), m, tolerance);
  }
  const auto traces = inside.learner.etraces();
  const auto wanted = apart.learner.etraces();
  for (std::size_t i = 0; i < traces.size(); ++i)
    testing::check_close(traces[i].slot.name(), traces[i].value, wanted[i].value,
                         tolerance);
}

LearnerOptions options(std::optional<std::int64_t> batch, DType dtype = DType::f64,
                       ExecutorKind executor = ExecutorKind::plan) {
  return {.batch_size = batch, .seed = 3, .dtype = dtype, .executor = executor};
}

void check(const Net& net, const Algorithm& rule, const UpdateRule& update,
           std::optional<std::int64_t> batch) {
  CAPTURE(net.model);
  CAPTURE(rule.name);
  CAPTURE(update.index());
  Run apart(net, rule, update, options(batch)), inside(net, rule, update, options(batch));
  compare(apart, inside, tol::f64);
}

}  // namespace

TEST_CASE("a step with its update moves parameters as the gradient and the optimiser") {
  for (const Net* net : {&gru, &lstm, &lif, &conv, &sparse, &low_rank})
    for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(pp_prop{0.9})})
      for (const std::optional<std::int64_t> batch :
           {std::optional<std::int64_t>{}, std::optional<std::int64_t>{3}})
        check(*net, rule, SGD{.lr = 0.05}, batch);
}

TEST_CASE("every rule of learning takes the update in") {
  for (const Algorithm& rule :
       {Algorithm(EProp{.kappa_filter_decay = 0.8}), Algorithm(OSTLRecurrent{}),
        Algorithm(OSTLFeedforward{}), Algorithm(UORO{}), Algorithm(SnAp{.n = 2}),
        Algorithm(ExactRTRL{})})
    check(gru, rule, SGD{.lr = 0.05}, 2);
}

TEST_CASE("every optimiser goes into the step, with its moments") {
  const UpdateRule rules[] = {
      SGD{.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
      Adam{.lr = 0.01, .weight_decay = 0.01},
      Adam{.lr = 0.01, .amsgrad = true},
      AdamW{.lr = 0.01},
      RMSprop{.lr = 0.01, .momentum = 0.5, .centered = true, .weight_decay = 0.01},
      Lion{.lr = 0.01, .weight_decay = 0.1}};
  for (const UpdateRule& rule : rules) {
    check(gru, D_RTRL{}, rule, 3);
    check(lif, D_RTRL{}, rule, std::nullopt);
  }
}

// Sizes at which traces have kernels of their own: rows of vectors and a rest.
TEST_CASE("large traces are moved with their weights in one pass") {
  const auto sized = [](const char* cell) {
    const std::string model = fmt::format(
        R"({{"kind": "sequential", "layers": [
           {{"name": "rnn", "class": "{}", "args": {{"in_size": 6, "out_size": 93}}}},
           {{"name": "out", "class": "Linear", "args": {{"in_size": 93, "out_size": 4}}}}]}})",
        cell);
    return Net{model, {6}, {4}};
  };
  for (const char* cell : {"GRUCell", "LSTMCell", "VanillaRNNCell"})
    for (const std::optional<std::int64_t> batch :
         {std::optional<std::int64_t>{}, std::optional<std::int64_t>{5}}) {
      CAPTURE(cell);
      const Net net = sized(cell);
      Run apart(net, D_RTRL{}, SGD{.lr = 0.1}, options(batch)),
          inside(net, D_RTRL{}, SGD{.lr = 0.1}, options(batch));
      compare(apart, inside, tol::f64);
      Run apart32(net, D_RTRL{}, SGD{.lr = 0.1}, options(batch, DType::f32)),
          inside32(net, D_RTRL{}, SGD{.lr = 0.1}, options(batch, DType::f32));
      compare(apart32, inside32, tol::f32);
    }
}

TEST_CASE("the interpreter takes the update in, too") {
  Run apart(lstm, D_RTRL{}, Adam{.lr = 0.01}, options(2)),
      inside(lstm, D_RTRL{}, Adam{.lr = 0.01},
             options(2, DType::f64, ExecutorKind::interpreter));
  compare(apart, inside, tol::f64);
}

TEST_CASE("lanes share the parameters that a step moves") {
  LearnerOptions lanes = options(3);
  lanes.vmap = true;
  Run apart(gru, D_RTRL{}, SGD{.lr = 0.05}, lanes),
      inside(gru, D_RTRL{}, SGD{.lr = 0.05}, lanes);
  compare(apart, inside, tol::f64);
}

TEST_CASE("an optimiser that clips is asked behind the gradient") {
  const OptimizerOptions clip{.clip_norm = 0.05, .clip_value = 0.02};
  Run apart(gru, D_RTRL{}, Adam{.lr = 0.01}, options(2), clip),
      inside(gru, D_RTRL{}, Adam{.lr = 0.01}, options(2), clip);
  compare(apart, inside, tol::f64);
}

TEST_CASE("schedules count the updates inside steps") {
  const OptimizerOptions slower{.schedule = [](std::int64_t n) { return 0.1 / (1 + n); }};
  Run apart(gru, D_RTRL{}, SGD{}, options(2), slower),
      inside(gru, D_RTRL{}, SGD{}, options(2), slower);
  compare(apart, inside, tol::f64);
  CHECK(inside.optimizer.num_updates() == 6);
  CHECK(inside.optimizer.learning_rate() == doctest::Approx(0.1 / 7));
}

TEST_CASE("steps with and without an update, and sequences, take turns") {
  Run apart(gru, D_RTRL{}, Adam{.lr = 0.01}, options(2)),
      inside(gru, D_RTRL{}, Adam{.lr = 0.01}, options(2));
  for (Run* r : {&apart, &inside}) r->step(10);
  compare(apart, inside, tol::f64, 3);
  apart.optimizer.load_state_dict(inside.optimizer.state_dict());
  for (Run* r : {&apart, &inside}) r->step(11);
  compare(apart, inside, tol::f64, 3);
}

TEST_CASE("whoever holds a weight or a moment keeps what he holds") {
  Run r(gru, D_RTRL{}, Adam{.lr = 0.01}, options(2));
  r.update(0);
  const StateDict weights = state_dict(*r.model), moments = r.optimizer.state_dict();
  const std::string path = "rnn/Wh/weight/weight";
  const std::vector<double> w = weights.at(path).to_doubles(),
                            m = moments.at("m/" + path).to_doubles();
  r.update(1);
  CHECK(weights.at(path).to_doubles() == w);
  CHECK(moments.at("m/" + path).to_doubles() == m);
  CHECK(state_dict(*r.model).at(path).to_doubles() != w);
}

TEST_CASE("a gradient that is not finite moves nothing where that is checked") {
  LearnerOptions checked = options(2);
  checked.learning.check_finite = true;
  Run r(gru, D_RTRL{}, SGD{.lr = 0.1}, checked);
  r.update(0);
  const std::vector<double> w =
      state_dict(*r.model).at("rnn/Wh/weight/weight").to_doubles();
  std::vector<Array> bad = r.data(1);
  bad[1] = full({2, 2}, std::numeric_limits<double>::infinity(), DType::f64);
  CHECK_THROWS_WITH_AS(r.learner.step_update(bad, *r.loss, r.optimizer),
                       doctest::Contains("the gradient of"), UserError);
  CHECK(state_dict(*r.model).at("rnn/Wh/weight/weight").to_doubles() == w);
  CHECK(r.optimizer.num_updates() == 1);
}

TEST_CASE("losses of others and moments of another shape are refused by name") {
  Run r(gru, D_RTRL{}, Adam{}, options(2)), other(gru, D_RTRL{}, Adam{}, options(2)),
      larger(lstm, D_RTRL{}, Adam{}, options(2));
  CHECK_THROWS_WITH_AS(r.learner.step_update(r.data(0), other.handle(), r.optimizer),
                       doctest::Contains("step_update: the loss was traced by another"),
                       UserError);
  larger.update(0);
  r.optimizer.load_state_dict(larger.optimizer.state_dict());
  CHECK_THROWS_WITH_AS(
      r.update(0),
      doctest::Contains("step_update: 'out/weight/weight' is [7,2], moment 'm' of the "
                        "optimiser [21,2]"),
      UserError);
}

}  // namespace step_update_test
