// SPDX-License-Identifier: Apache-2.0
// Traces of every kind of trainable op into states that leak alike everywhere: stored
// once or whole, they give the same numbers.
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/algo/algorithm_aliases.h"
#include "braintrace/nn/conv.h"
#include "braintrace/nn/grouped_linear.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/lora.h"
#include "braintrace/nn/sparse_linear.h"
#include "braintrace/testing/close.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/trace_packing.h"

namespace trace_packing_ops_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kBatch = 3;

// h' = 0.8 h + layer(x): D and df are the same for all positions.
class Leaky : public Module {
 public:
  Leaky(std::unique_ptr<Module> layer, const Shape& out)
      : h(out), layer_(std::move(layer)) {
    add("layer", *layer_);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(0.8 * h.value() + (*layer_)(std::move(x)));
    return tanh(h.value());
  }

  HiddenState h;

 private:
  std::unique_ptr<Module> layer_;
};

struct Layer {
  std::string name;
  std::function<std::unique_ptr<Module>()> make;
  Shape in, out;
  bool repeats = true;  // does its trace hold the same number more than once?
};

std::vector<Layer> layers() {
  using namespace nn;
  const auto make = []<class M>(auto... args) {
    return [=] { return std::unique_ptr<Module>(std::make_unique<M>(args...)); };
  };
  const SparseStructure ring =
      coo_structure(4, 5, IndexList({0, 0, 1, 2, 3, 3}), IndexList({0, 4, 1, 2, 2, 3}));
  return {{"linear", make.operator()<Linear>(4, 5), {4}, {5}},
          {"sparse", make.operator()<SparseLinear>(ring), {4}, {5}, false},
          {"lora", make.operator()<LoRA>(4, 2, 5), {4}, {5}},
          {"grouped", make.operator()<GroupedLinear>(2, 3, 4), {2, 3}, {2, 4}},
          {"conv",
           make.operator()<Conv1d>(Shape{6, 2}, 3, ConvOptions{.kernel_size = 3}),
           {6, 2},
           {6, 3},
           false}};
}

Shape joined(std::vector<std::int64_t> lead, const Shape& rest) {
  lead.insert(lead.end(), rest.begin(), rest.end());
  return lead;
}

struct Seen {
  std::vector<std::string> names;
  std::vector<Array> values;
  std::int64_t stored = 0;  // elements of traces
};

// Steps, a window and steps.
Seen run(const Layer& layer, const Algorithm& rule, std::int64_t compact_bytes) {
  std::uint64_t key = 3;
  const auto drawn = [&](const Shape& shape) {
    return random_normal(rng_key(++key), shape, DType::f64);
  };
  Leaky model(layer.make(), layer.out);
  const Shape in = joined({kBatch}, layer.in), out = joined({kBatch}, layer.out);
  Learner learner(model, rule, {drawn(in)},
                  {.batch_size = kBatch,
                   .seed = 5,
                   .dtype = DType::f64,
                   .compact_bytes = compact_bytes});
  LossHandle loss = learner.trace_loss(
      [&](const Values& v) {
        return LossResult{mse(learner(v[0]), v[1]), {}};
      },
      {drawn(in), drawn(out)});
  Seen seen;
  const auto note = [&](const StateDict& gradients) {
    for (const auto& [name, g] : gradients) {
      seen.names.push_back(name);
      seen.values.push_back((Value(g) * 1).array());
    }
    for (const TraceView& t : learner.etraces()) {
      seen.names.push_back(t.slot.name());
      seen.values.push_back((Value(t.value) * 1).array());
    }
  };
  const auto steps = [&](int count) {
    for (int t = 0; t < count; ++t)
      note(*learner.step_grad({drawn(in), drawn(out)}, loss).gradients);
  };
  steps(3);
  note(
      learner
          .etrace_grad(drawn(joined({5, kBatch}, layer.in)),
                       drawn(joined({5, kBatch}, layer.out)),
                       [&](const Value& x, const Value& y) { return mse(learner(x), y); },
                       {.window = 2})
          .grads);
  steps(2);
  CompiledRule compiled(std::make_shared<ETraceGraph>(learner.graph()), rule, {});
  const TracePacking packing = TracePacking::compact(compiled, {}, compact_bytes);
  for (const TracePacking::Stored& s : packing.stored())
    seen.stored += num_elements(s.type.shape);
  return seen;
}

}  // namespace

TEST_CASE("traces of every op give the same numbers stored once and whole") {
  for (const Layer& layer : layers())
    for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(EProp{})}) {
      CAPTURE(layer.name);
      CAPTURE(rule.name);
      const Seen compact = run(layer, rule, 0);
      const Seen whole = run(layer, rule, std::numeric_limits<std::int64_t>::max());
      REQUIRE(compact.names == whole.names);
      double largest = 0;
      for (std::size_t i = 0; i < whole.values.size(); ++i) {
        testing::check_close(whole.names[i], compact.values[i], whole.values[i], 1e-12);
        for (const double v : whole.values[i].to_doubles())
          largest = std::max(largest, std::abs(v));
      }
      CHECK(largest > 1e-3);
      CHECK((compact.stored < whole.stored) == layer.repeats);
    }
}

}  // namespace trace_packing_ops_test
