// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/trace_packing.h"

#include <limits>

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/learner_checkpoint.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/optimizers.h"

namespace trace_packing_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::string spiking(const std::string& kind, std::int64_t n_rec = 24) {
  return R"({"kind": ")" + kind + R"(", "n_in": 4, "n_rec": )" + std::to_string(n_rec) +
         R"(, "n_out": 5, "tau_mem": 5, "tau_syn": 4, "tau_out": 3, "V_th": 0.2})";
}
const std::string kGru =
    R"({"kind": "two_layer_gru", "n_in": 4, "n_rec": 6, "n_out": 5})";

std::vector<Algorithm> rules() {
  return {D_RTRL{},
          D_RTRL{.vjp_method = VjpMethod::multi_step},
          EProp{.kappa_filter_decay = 0.8},
          EProp{.feedback = "random", .random_feedback_key = 1},
          OSTLRecurrent{},
          ThreeFactor{},
          Hybrid{.decay_or_rank = 0.9}};
}

struct Setup {
  std::string model;
  Algorithm rule = D_RTRL{};
  std::int64_t compact_bytes = 0;
  DType dtype = DType::f64;
  ExecutorKind executor = ExecutorKind::plan;
  int threads = 1;
  bool vmap = false;
};

// A learner under way: weights move at every step.
class Run {
 public:
  explicit Run(const Setup& s)
      : dtype_(s.dtype),
        model_(nn::build_model(s.model)),
        learner(*model_, s.rule, {drawn({3, 4})},
                {.batch_size = 3,
                 .seed = 5,
                 .dtype = s.dtype,
                 .vmap = s.vmap,
                 .executor = s.executor,
                 .threads = s.threads,
                 .compact_bytes = s.compact_bytes}) {
    if (s.rule.config.learning_signal() == LearningSignal::modulatory)
      learner.set_modulator(scalar(0.5));
    optimizer.attach(*model_);
    handle_ = std::make_unique<LossHandle>(learner.trace_loss(
        [this](const Values& in) {
          return LossResult{mse(learner(in[0]), in[1]), {}};
        },
        {drawn({3, 4}), drawn({3, 5})}));
  }

  void online(int steps) {
    for (int t = 0; t < steps; ++t) {
      const StepGradient g = learner.step_grad({drawn({3, 4}), drawn({3, 5})}, *handle_);
      for (const auto& [leaf, value] : *g.gradients) note(leaf, value);
      optimizer.update(*g.gradients);
    }
    note_traces();
  }
  void windows(std::int64_t steps, std::int64_t window) {
    const GradResult r = learner.etrace_grad(
        drawn({steps, 3, 4}), drawn({steps, 3, 5}),
        [this](const Value& x, const Value& y) { return mse(learner(x), y); },
        {.window = window});
    for (const auto& [leaf, g] : r.grads) note(leaf, g);
    note_traces();
  }
  void evolve() {
    learner.step({drawn({3, 4})});
    note_traces();
  }
  // Steps and windows in turn, with ends of histories between.
  void ragged(bool vmap) {
    online(5);
    if (!vmap) windows(7, 3);
    evolve();
    online(3);
    learner.init_etrace_state();
    if (!vmap) windows(4, 4);
    online(2);
    learner.reset_state();
    evolve();
    online(4);
  }
  void note(const std::string& name, const Array& a) {
    names.push_back(name);
    seen.push_back((Value(a) * 1).array());
  }
  void note_traces() {
    for (const TraceView& t : learner.etraces()) note(t.slot.name(), t.value);
  }
  Array drawn(const Shape& shape) {
    return (Value(random_normal(rng_key(++key_), shape, dtype_)) * 2).array();
  }

 private:
  DType dtype_;
  std::uint64_t key_ = 10;
  std::unique_ptr<Module> model_;
  std::unique_ptr<LossHandle> handle_;

 public:
  Learner learner;
  Optimizer optimizer{SGD{.lr = 1e-3}};
  std::vector<std::string> names;
  std::vector<Array> seen;
};

void check_close(const Run& got, const Run& want, double tolerance) {
  REQUIRE(got.names == want.names);
  for (std::size_t i = 0; i < got.seen.size(); ++i)
    testing::check_close(got.names[i], got.seen[i], want.seen[i], tolerance);
}

std::string stored_shapes(const std::string& model, std::int64_t min_bytes) {
  Run r({.model = model, .compact_bytes = kNever});
  CompiledRule rule(std::make_shared<ETraceGraph>(r.learner.graph()), D_RTRL{}, {});
  const TracePacking packing = TracePacking::compact(rule, {}, min_bytes);
  std::string out;
  for (const TracePacking::Stored& s : packing.stored()) out += to_string(s.type.shape);
  return out;
}

}  // namespace

TEST_CASE("states that do not know who reads them are stored once") {
  // V and g of the weight, V and g of the bias, the readout, which leaks alike everywhere
  CHECK(stored_shapes(spiking("lif_net"), 0) ==
        "[3,28,24,1][3,28,1,1][3,24,1][1,1,1][3,24,1,1]");
  CHECK(stored_shapes(spiking("lif_net"), 4000) ==
        "[3,28,24,1][3,28,1,1][3,24,1][3,24,1][3,24,5,1]");
  CHECK(stored_shapes(spiking("lif_net"), kNever) ==
        "[3,28,24,1][3,28,24,1][3,24,1][3,24,1][3,24,5,1]");
}

TEST_CASE("traces whose decay depends on the neuron are stored whole") {
  CHECK(stored_shapes(kGru, 0) == stored_shapes(kGru, kNever));
}

TEST_CASE("traces that are stored once give the numbers of whole ones") {
  for (const char* kind : {"lif_net", "alif_net"})
    for (const Algorithm& rule : rules())
      for (const bool vmap : {false, true}) {
        CAPTURE(kind);
        CAPTURE(rule.name);
        CAPTURE(vmap);
        Setup setup{.model = spiking(kind), .rule = rule, .vmap = vmap};
        Run compact(setup);
        setup.compact_bytes = kNever;
        Run whole(setup);
        setup.executor = ExecutorKind::interpreter;
        setup.compact_bytes = 0;
        Run interpreted(setup);
        for (Run* r : {&compact, &whole, &interpreted}) r->ragged(vmap);
        check_close(compact, whole, 1e-12);
        check_close(compact, interpreted, 1e-12);
      }
}

TEST_CASE("in single precision, too, and with the same bits at any number of threads") {
  Setup setup{.model = spiking("lif_net", 150), .dtype = DType::f32};
  setup.compact_bytes = kNever;
  Run whole(setup);
  whole.ragged(false);
  setup.compact_bytes = 0;
  std::vector<Array> first;
  for (const int threads : {1, 2, 4}) {
    setup.threads = threads;
    Run compact(setup);
    compact.ragged(false);
    check_close(compact, whole, 1e-6);
    if (first.empty()) first = compact.seen;
    CHECK((compact.seen == first));
  }
}

TEST_CASE("a checkpoint goes on with the same bits") {
  const Setup setup{.model = spiking("lif_net"), .dtype = DType::f32};
  Run all(setup), half(setup), other(setup);
  all.online(9);
  half.online(4);
  other.online(4);
  other.learner.reset_state();
  restore(other.learner, other.optimizer, checkpoint_of(half.learner, half.optimizer, 4));
  other.online(5);
  REQUIRE(other.seen.size() > 0);
  for (std::size_t k = 1; k <= 3; ++k) CHECK(other.seen.end()[-k] == all.seen.end()[-k]);
}

TEST_CASE("traces that are set to what does not repeat are stored whole from then on") {
  Setup setup{.model = spiking("lif_net")};
  Run compact(setup);
  setup.compact_bytes = kNever;
  Run whole(setup);
  for (Run* r : {&compact, &whole}) {
    r->online(2);
    for (const TraceView& t : r->learner.etraces())
      r->learner.set_etrace(t.slot.name(), r->drawn(t.value.shape()));
    r->note_traces();
    r->online(3);
    r->windows(4, 2);
    r->online(2);
  }
  check_close(compact, whole, 1e-12);
}

}  // namespace trace_packing_test
