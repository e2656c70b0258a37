// SPDX-License-Identifier: Apache-2.0
// What plans cost: one step of a GRU layer, a scan over its steps, and the
// gradient of that scan. Times of scans are per time step (counter per_step).
#include <string_view>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "braintrace/ir/builder.h"
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

std::vector<Array> numbers_for(const Graph& g) {
  std::vector<Array> inputs;
  for (const Type& t : g.input_types()) inputs.push_back(numbers(t.shape));
  return inputs;
}

// h' of a GRU layer, as nn::GRUCell writes it. Weights: z, r, h, each with its bias.
Value gru(const Value& x, const Value& h, const Values& w) {
  const Value xh = concat({x, h}, 1);
  const Value z = sigmoid(matmul(xh, w[0], w[1]));
  const Value r = sigmoid(matmul(xh, w[2], w[3]));
  const Value candidate = tanh(matmul(concat({x, r * h}, 1), w[4], w[5]));
  return (1 - z) * h + z * candidate;
}

Values gru_weights(Builder& b, std::int64_t n) {
  Values w;
  for (int gate = 0; gate < 3; ++gate) {
    w.push_back(b.input({DType::f32, {kInputs + n, n}}));
    w.push_back(b.input({DType::f32, {n}}));
  }
  return w;
}

Program gru_step(std::int64_t n, std::int64_t batch) {
  const auto builder = Builder::create();
  const Value h = builder->input({DType::f32, {batch, n}});
  const Value x = builder->input({DType::f32, {batch, kInputs}});
  Graph g = builder->finish(Values{gru(x, h, gru_weights(*builder, n))});
  std::vector<Array> inputs = numbers_for(g);
  return {std::move(g), std::move(inputs), {{0, 0}}};
}

// (xs, h, weights) -> sum of squares of all h.
Program gru_scan(std::int64_t n, std::int64_t batch) {
  const auto builder = Builder::create();
  const Value xs = builder->input({DType::f32, {kSteps, batch, kInputs}});
  const Value h = builder->input({DType::f32, {batch, n}});
  const Values w = gru_weights(*builder, n);
  const auto body = [&](const Values& in) {
    const Value next = gru(in[1], in[0], w);
    return Values{next, sum(square(next))};
  };
  const ScanResult r = scan(body, {h}, {xs});
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

int main(int argc, char** argv) {
  // With a model's name alone: what its plan for N = 256, B = 16 is made of.
  const std::string_view show = argc == 2 ? argv[1] : "";
  if (show == "step")
    return fmt::print("{}", Plan(gru_step(256, 16).graph).describe()), 0;
  if (show == "scan")
    return fmt::print("{}", Plan(gru_scan(256, 16).graph).describe()), 0;
  if (show == "gradient")
    return fmt::print("{}", Plan(gru_gradient(256, 16).graph).describe()), 0;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
