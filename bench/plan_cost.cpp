// SPDX-License-Identifier: Apache-2.0
// What plans cost: one step of a GRU layer, a scan over its steps, and the
// gradient of that scan. Times of scans are per time step (counter per_step).
#include <benchmark/benchmark.h>

#include "braintrace/ir/builder.h"
#include "braintrace/model/step_model.h"
#include "braintrace/nn/gru.h"
#include "braintrace/ops/ops.h"
#include "braintrace/run/plan.h"
#include "braintrace/transforms/vjp.h"

using namespace braintrace;

namespace {

constexpr std::int64_t kInputs = 10, kSteps = 100;

struct Program {
  Graph graph;
  std::vector<Array> inputs;
  std::vector<std::pair<std::size_t, std::size_t>> in_place = {};
};

Array numbers(const Shape& shape) {
  Array a(DType::f32, shape);
  float* p = a.mutable_data<float>();
  for (std::int64_t i = 0; i < a.size(); ++i)
    p[i] = static_cast<float>((i * 7919) % 1000) * 2e-4f - 0.1f;
  return a;
}

// A traced GRU step; all state leaves in one row, the hidden one by its place
// in it.
struct Traced {
  StepModel step;
  std::vector<Type> leaves;
  std::size_t hidden = 0;
};
Traced traced_gru(std::int64_t n, std::int64_t batch) {
  nn::GRUCell cell(kInputs, n);
  init_all_states(cell, {.batch_size = batch});
  Traced t{trace_step(cell, std::vector{zeros({batch, kInputs})}), {}};
  for (const StepState& s : t.step.states) {
    if (s.written) t.hidden = t.leaves.size();
    for (ValueId v : s.in) t.leaves.push_back(t.step.program.type(v));
  }
  return t;
}

std::vector<Array> numbers_for(const Graph& g) {
  std::vector<Array> inputs;
  for (const Type& t : g.input_types()) inputs.push_back(numbers(t.shape));
  return inputs;
}

Program gru_step(std::int64_t n, std::int64_t batch) {
  const Traced t = traced_gru(n, batch);
  return {t.step.program,
          numbers_for(t.step.program),
          {{t.step.num_args + t.hidden, t.step.num_outputs + t.hidden}}};
}

// (xs, states) -> sum of squares of all h.
Program gru_scan(std::int64_t n, std::int64_t batch) {
  const Traced t = traced_gru(n, batch);
  const auto builder = Builder::create();
  const Value xs = builder->input({DType::f32, {kSteps, batch, kInputs}});
  Values states;
  for (const Type& leaf : t.leaves) states.push_back(builder->input(leaf));
  const auto body = [&](const Values& in) {
    Values args = {in[1]};
    args.insert(args.end(), states.begin(), states.end());
    args[1 + t.hidden] = in[0];
    const Values out = inline_graph(t.step.program, args);
    const Value h = out[t.step.num_outputs + t.hidden];
    return Values{h, sum(square(h))};
  };
  const ScanResult r = scan(body, {states[t.hidden]}, {xs});
  Graph g = builder->finish(Values{sum(r.ys[0])});
  std::vector<Array> inputs = numbers_for(g);
  return {std::move(g), std::move(inputs)};
}

Program gru_gradient(std::int64_t n, std::int64_t batch) {
  Program p = gru_scan(n, batch);
  return {grad(p.graph), p.inputs};
}

template <Program (*make)(std::int64_t, std::int64_t), std::int64_t steps>
void run(benchmark::State& state) {
  const Program p = make(state.range(0), state.range(1));
  Plan plan(p.graph, {.in_place = p.in_place});
  std::vector<Array> out;
  for (auto _ : state) plan.run(p.inputs, out);
  state.counters["per_step"] = benchmark::Counter(
      static_cast<double>(steps),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["arena_MB"] = static_cast<double>(plan.arena_bytes()) * 1e-6;
}

template <Program (*make)(std::int64_t, std::int64_t)>
void layout(benchmark::State& state) {
  const Program p = make(state.range(0), state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(Plan(p.graph, {.threads = 1}));
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({32, 1})->Args({128, 1})->Args({128, 16})->Args({256, 16})->Args({256, 64});
  b->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(run<gru_step, 1>)->Apply(sizes)->Name("gru_step");
BENCHMARK(run<gru_scan, kSteps>)->Apply(sizes)->Name("gru_scan");
BENCHMARK(run<gru_gradient, kSteps>)->Apply(sizes)->Name("gru_gradient");
BENCHMARK(layout<gru_gradient>)
    ->Args({128, 16})
    ->Unit(benchmark::kMicrosecond)
    ->Name("layout");

}  // namespace

BENCHMARK_MAIN();
