// SPDX-License-Identifier: Apache-2.0
// A plan takes its memory once: runs after the first allocate nothing. Counted by
// standing in for the allocation functions of the whole process.
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/nn/nn.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/run/plan.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/prepared_grad.h"
#include "braintrace/transforms/vjp.h"

using namespace braintrace;

// Sanitizers stand there themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BT_COUNTS_ALLOCATIONS 0
#else
#define BT_COUNTS_ALLOCATIONS 1
#endif

#if BT_COUNTS_ALLOCATIONS
namespace {
std::atomic<long> allocations{0};
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* p, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  ++allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t size) {
  ++allocations;
  return __libc_realloc(p, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t size) {
  ++allocations;
  *p = __libc_memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}
}

namespace {

constexpr std::int64_t kSteps = 6, kBatch = 4, kUnits = 24;

// A gated loop: everything a recurrent layer needs. (xs, h, W, U, b) -> (loss, h)
Graph gated_loop() {
  const auto builder = Builder::create();
  const auto f32 = [&](Shape s) { return builder->input({DType::f32, std::move(s)}); };
  const Value xs = f32({kSteps, kBatch, 8}), h = f32({kBatch, kUnits});
  const Value w = f32({8 + kUnits, kUnits}), u = f32({8 + kUnits, kUnits}),
              b = f32({kUnits});
  const auto body = [&](const Values& in) {
    const Value both = concat({in[1], in[0]}, 1);
    const Value z = sigmoid(dot(both, w) + b);
    const Value next = z * in[0] + (1 - z) * tanh(dot(both, u));
    return Values{next, sum(square(next))};
  };
  const ScanResult r = scan(body, {h}, {xs});
  return builder->finish(Values{sum(r.ys[0]), r.carry[0]});
}

std::vector<Array> numbers_for(const Graph& g) {
  std::vector<Array> inputs;
  for (const Type& t : g.input_types()) {
    Array a(t.dtype, t.shape);
    for (std::int64_t i = 0; i < a.size(); ++i)
      a.mutable_data<float>()[i] = static_cast<float>((i * 37) % 101) * 0.002f - 0.1f;
    inputs.push_back(a);
  }
  return inputs;
}

// What the last of several calls takes.
template <class F>
long allocations_of_last(int calls, const F& call) {
  long before = 0;
  for (int i = 0; i < calls; ++i) {
    before = allocations;
    call();
  }
  return allocations - before;
}

// A sequence in one window, over and over.
long allocations_of_prepared(Module& model, const Algorithm& rule,
                             const GradOptions& options) {
  Learner learner(model, rule, {zeros({kBatch, 8})},
                  {.batch_size = kBatch, .threads = 1});
  const std::vector<Array> data = {full({kSteps, kBatch, 8}, 0.5),
                                   zeros({kSteps, kBatch, kUnits})};
  PreparedGrad prepared =
      learner.prepare([&](const Value& x, const Value& y) { return mse(learner(x), y); },
                      data[0], data[1], options);
  GradResult result;
  const long count = allocations_of_last(4, [&] { prepared.grad_into(data, result); });
  CHECK(result.steps == kSteps);
  return count;
}

long allocations_of_third_run(const Graph& g, const PlanOptions& options) {
  Plan plan(g, options);
  std::vector<Array> in = numbers_for(g), out;
  long before = 0;
  for (int i = 0; i < 3; ++i) {
    for (const auto& [from, to] : options.in_place)
      if (i > 0) in[from] = out[to];
    before = allocations;
    plan.run(in, out);
  }
  return allocations - before;
}

}  // namespace

TEST_CASE("the counter sees allocations") {
  const long before = allocations;
  const Array a = zeros({3});
  CHECK(allocations > before);
}

TEST_CASE("a plan that has run allocates nothing when it runs again") {
  const Graph loop = gated_loop();
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    CHECK(allocations_of_third_run(loop, {.threads = threads}) == 0);
    CHECK(allocations_of_third_run(loop, {.threads = threads, .in_place = {{1, 1}}}) ==
          0);
    CHECK(allocations_of_third_run(grad(loop, {false, true, true, true, true}),
                                   {.threads = threads}) == 0);
  }
}

TEST_CASE("prepared gradients over one window allocate nothing from the third call on") {
  nn::GRUCell traced(8, kUnits);
  CHECK(allocations_of_prepared(traced, D_RTRL{}, {}) == 0);
  nn::ValinaRNNCell factorised(8, kUnits);
  CHECK(allocations_of_prepared(factorised, pp_prop{.decay_or_rank = 0.9},
                                {.carry_traces = false}) == 0);
}

TEST_CASE("drawing random numbers allocates nothing") {
  const Graph g = parse(R"(in %0:i32[2] %1:i32[] %2:f32[5]
      %3 = random_fold_in %0 %1
      %4 = random_normal {dtype=f32, shape=[5]} %3
      %5 = random_uniform {dtype=f32, shape=[5]} %3
      %6 = random_bernoulli %3 %2
      out %3 %4 %5 %6)");
  Plan plan(g, {.threads = 1});
  const std::vector<Array> in = {key_array(rng_key(1)), scalar(3, DType::i32),
                                 full({5}, 0.5)};
  std::vector<Array> out;
  CHECK(allocations_of_last(3, [&] { plan.run(in, out); }) == 0);
}

TEST_CASE("a state that cannot be updated in place takes turns between two buffers") {
  const Graph g = parse(R"(in %0:f32[2] %1:f32[2]
      %2:f32[2] = mul %0 %1
      %3:f32[] = reduce_sum {axes=[0]} %2
      %4:f32[2] = broadcast {shape=[2]} %3
      %5:f32[2] = add %4 %0
      out %2 %5)");
  CHECK(allocations_of_third_run(g, {.threads = 1, .in_place = {{0, 0}}}) == 0);
}

TEST_CASE("a caller who holds each result until the next one costs no allocation") {
  const Graph g = parse(R"(in %0:f32[2]
      %1:f32[2] = add %0 %0
      out %1)");
  Plan plan(g, {.threads = 1});
  std::vector<Array> in = {ones({2})}, out;
  const auto run_with = [&](double x) {
    in[0].mutable_data<float>()[0] = static_cast<float>(x);
    plan.run(in, out);
  };
  Array held;
  long before = 0;
  for (int turn = 0; turn < 5; ++turn) {
    if (turn == 3) before = allocations;
    run_with(turn);
    CHECK(out[0].at(0) == 2 * turn);
    if (turn > 0) CHECK(held.at(0) == 2 * (turn - 1));  // not written to meanwhile
    held = out[0];
  }
  CHECK(allocations - before == 0);
}
#endif
