// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/online_trial.h"

#include <algorithm>
#include <cmath>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/bptt.h"

namespace braintrace::testing {
namespace {

Shape batched(const OnlineTrial& t, Shape s) {
  if (t.batch_size) s.insert(s.begin(), *t.batch_size);
  return s;
}

Value squared_distance(const Value& y, const Value& target) {
  return sum(square(y - target));
}

}  // namespace

std::unique_ptr<Module> OnlineTrial::build() const { return nn::build_model(model); }

Learner OnlineTrial::learner(Module& m, const Algorithm& algorithm) const {
  LearnerOptions o = options;
  o.batch_size = batch_size;
  o.seed = seed;
  o.dtype = DType::f64;
  return compile(m, algorithm, zeros(batched(*this, input), DType::f64), o);
}

Array OnlineTrial::inputs() const {
  Shape s = batched(*this, input);
  s.insert(s.begin(), steps);
  return random_normal(fold_in(rng_key(seed), std::uint64_t{99}), s, DType::f64);
}

Array OnlineTrial::targets(const Shape& output) const {
  Shape s = output;
  s.insert(s.begin(), steps);
  return random_normal(fold_in(rng_key(seed), std::uint64_t{100}), s, DType::f64);
}

StateDict OnlineTrial::run(Learner& l, std::int64_t chunk) const {
  const Graph& program = l.graph().module_info.program();
  Shape output = program.type(program.outputs()[0]).shape;
  if (l.options().vmap) output.insert(output.begin(), *batch_size);
  GradOptions o{.window = window, .reduction = Reduction::sum};
  if (chunk > 1) o.chunk_size = chunk;
  const auto loss = [&](const Values& in) {
    if (chunk == 1)
      return LossResult{.loss = squared_distance(l(in[0]), in[1]), .results = {}};
    const Value d = l(MultiStepData{{in[0]}})[0] - in[1];
    Ints axes = iota_ints(d.rank());
    axes.erase(axes.begin());
    return LossResult{.loss = sum(square(d), {.axes = axes}), .results = {}};
  };
  return l.etrace_grad(std::vector{inputs(), targets(output)}, loss, o).grads;
}

StateDict OnlineTrial::online(const Algorithm& algorithm, std::int64_t chunk) const {
  const auto m = build();
  Learner l = learner(*m, algorithm);
  return run(l, chunk);
}

StateDict OnlineTrial::bptt() const {
  const auto m = build();
  InitOptions init{.seed = seed, .dtype = DType::f64};
  init.batch_size = batch_size;
  init_all_states(*m, init);
  return testing::bptt(*m, steps_of(inputs()),
                       [&](std::size_t t, const Values& y) {
                         const Array all = targets(y[0].shape());
                         return squared_distance(y[0],
                                                 row(all, static_cast<std::int64_t>(t)));
                       })
      .grads;
}

double largest(const StateDict& grads, const std::string& leaf) {
  double most = 0;
  for (double v : grads.at(leaf).to_doubles()) most = std::max(most, std::abs(v));
  return most;
}

double relative_distance(const StateDict& got, const StateDict& want,
                         const std::string& leaf) {
  const std::vector<double> a = got.at(leaf).to_doubles(), b = want.at(leaf).to_doubles();
  BT_REQUIRE(a.size() == b.size(), "relative_distance: " + leaf + " differs in size");
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i])) return INFINITY;
    most = std::max(most, std::abs(a[i] - b[i]));
  }
  return most / std::max(largest(want, leaf), 1e-300);
}

double relative_distance(const StateDict& got, const StateDict& want) {
  double most = 0;
  for (const auto& [leaf, g] : want)
    most = std::max(most, relative_distance(got, want, leaf));
  return most;
}

}  // namespace braintrace::testing
