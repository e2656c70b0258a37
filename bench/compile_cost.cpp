// SPDX-License-Identifier: Apache-2.0
// What compiling costs: the two-layer GRU of the tutorials, and 1 to 64 stacked GRU
// layers. The counter per_layer is the time of one layer; flat means linear in the
// program.
#include <benchmark/benchmark.h>

#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/model_registry.h"

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

}  // namespace

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
