// SPDX-License-Identifier: Apache-2.0
// What compiling costs: the two-layer GRU of the tutorials, and 1 to 64 stacked GRU
// layers. The counter per_layer is the time of one layer; flat means linear in the
// program. Also what cleaning a program for many runs costs: a step, and the gradient of
// a loop over it.
#include <benchmark/benchmark.h>

#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/ir/builder.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/optimize_for_run.h"
#include "braintrace/transforms/vjp.h"

using namespace braintrace;

namespace {

constexpr std::int64_t kSize = 16;

class Stack : public Module {
 public:
  explicit Stack(std::int64_t layers) {
    std::vector<Module*> children;
    for (std::int64_t i = 0; i < layers; ++i) {
      cells_.push_back(std::make_unique<nn::GRUCell>(kSize, kSize));
      children.push_back(cells_.back().get());
    }
    add("layers", children);
  }
  Value update(Value x) override {
    for (const auto& cell : cells_) x = cell->update(x);
    return x;
  }

 private:
  std::vector<std::unique_ptr<nn::GRUCell>> cells_;
};

CompileOptions options_of(bool reference) {
  return reference ? compat() : CompileOptions{};
}

void two_layer_gru(benchmark::State& state, bool reference) {
  const auto model = nn::build_model("two_layer_gru");
  init_all_states(*model);
  const std::vector<Array> args = {ones({10})};
  for (auto _ : state)
    benchmark::DoNotOptimize(compile_etrace_graph(*model, args, options_of(reference)));
}

void trace_only(benchmark::State& state) {
  Stack model(state.range(0));
  init_all_states(model);
  const std::vector<Array> args = {ones({kSize})};
  for (auto _ : state) benchmark::DoNotOptimize(trace_step(model, args));
}

void stacked_gru(benchmark::State& state, bool reference) {
  const std::int64_t layers = state.range(0);
  Stack model(layers);
  init_all_states(model);
  const std::vector<Array> args = {ones({kSize})};
  for (auto _ : state)
    benchmark::DoNotOptimize(compile_etrace_graph(model, args, options_of(reference)));
  state.counters["per_layer"] = benchmark::Counter(
      static_cast<double>(layers),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

StepModel gru_step() {
  Stack model(1);
  init_all_states(model, {.batch_size = 16});
  return trace_step(model, {Type{DType::f32, {16, kSize}}});
}

// d sum(y^2) / d everything through a loop of 50 steps.
Graph gru_gradient(const StepModel& step) {
  const auto b = Builder::create();
  const std::size_t n = step.program.inputs().size();
  Values in;
  for (std::size_t i = 0; i < n; ++i) {
    Type t = step.program.type(step.program.inputs()[i]);
    if (i < step.num_args) t.shape.insert(t.shape.begin(), 50);
    in.push_back(b->input(t));
  }
  const Values states(in.begin() + 1, in.end());
  const auto body = [&](const Values& v) {
    Values args = {v.back()};
    args.insert(args.end(), v.begin(), v.end() - 1);
    Values out = inline_graph(step.program, args);
    Values result(out.begin() + static_cast<std::ptrdiff_t>(step.num_outputs), out.end());
    result.push_back(sum(square(out[0])));
    return result;
  };
  const ScanResult r = scan(body, states, {in[0]});
  return grad(b->finish(Values{sum(r.ys[0])}));
}

void optimize_step(benchmark::State& state) {
  const Graph g = gru_step().program;
  for (auto _ : state) benchmark::DoNotOptimize(optimize_for_run(g));
}

void optimize_gradient(benchmark::State& state) {
  const Graph g = gru_gradient(gru_step());
  for (auto _ : state) benchmark::DoNotOptimize(optimize_for_run(g));
}

}  // namespace

BENCHMARK(optimize_step)->Unit(benchmark::kMillisecond);
BENCHMARK(optimize_gradient)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(two_layer_gru, sound, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(two_layer_gru, compat, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stacked_gru, sound, false)
    ->RangeMultiplier(2)
    ->Range(1, 64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stacked_gru, compat, true)
    ->RangeMultiplier(2)
    ->Range(1, 64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(trace_only)->Arg(1)->Arg(64)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
