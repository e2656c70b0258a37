// SPDX-License-Identifier: Apache-2.0
// Loops that run part by part, against the interpreter.
#include <functional>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/run/plan.h"
#include "braintrace/testing/close.h"

namespace plan_slices_test {

using namespace braintrace;

namespace {

using Turn = std::function<Values(const Value& h, const Value& v, const Value& x)>;

// Two carried values of [rows, 96] through five turns.
Graph loop_of(std::int64_t rows, bool reverse, const Turn& turn) {
  const auto b = Builder::create();
  const Type state{DType::f32, {rows, 96}};
  const Value h = b->input(state), v = b->input(state);
  const Value xs = b->input({DType::f32, {5, rows, 96}});
  const ScanResult r = scan([&](const Values& in) { return turn(in[0], in[1], in[2]); },
                            {h, v}, {xs}, {.length = 5, .reverse = reverse});
  Values out = r.carry;
  out.insert(out.end(), r.ys.begin(), r.ys.end());
  return b->finish(out);
}

std::vector<Array> inputs_of(const Graph& g) {
  std::vector<Array> in;
  for (const Type& t : g.input_types())
    in.push_back(random_normal(rng_key(in.size()), t.shape, t.dtype));
  return in;
}

// The plan's text, when it has the bits of the interpreter at 1 to 3 threads, twice.
std::string checked(const Graph& g) {
  const std::vector<Array> in = inputs_of(g), want = interpret(g, in);
  std::string text;
  for (const int threads : {1, 2, 3}) {
    Plan plan(g, {.threads = threads});
    for (int again = 0; again < 2; ++again) {
      std::vector<Array> got;
      plan.run(in, got);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(got[i] == want[i]);
      }
    }
    text = plan.describe();
  }
  return text;
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

Values turn(const Value& h, const Value& v, const Value& x) {
  const Value next = tanh(h * 0.5 + x - v), slow = v * 0.75 + next * h;
  return {next, slow, h, slow, next * x};
}

}  // namespace

TEST_CASE("turns that work element by element run part by part with the same bits") {
  for (const bool reverse : {false, true})
    for (const std::int64_t rows : {64, 67, 200}) {
      CAPTURE(rows);
      const std::string text = checked(loop_of(rows, reverse, turn));
      CHECK(says(text, rows == 64   ? " in 2 parts"
                       : rows == 67 ? " in 4 parts"
                                    : " in 10 parts"));
      CHECK(says(text, "f32[" + std::to_string(rows) + ",96]:stacked before"));
      CHECK(says(text, "f32[" + std::to_string(rows) + ",96]:stacked "));
    }
}

TEST_CASE("a loop too small to share runs turn by turn") {
  CHECK_FALSE(says(checked(loop_of(8, false, turn)), "parts"));
}

TEST_CASE("turns that read other rows of what they carry are not cut") {
  const std::string row = checked(
      loop_of(64, false, [](const Value& h, const Value& v, const Value& x) -> Values {
        return {tanh(h + slice_axis(h, 0, 0, 1) + x), v * x, v};
      }));
  CHECK_FALSE(says(row, "parts"));
  const std::string turned = checked(
      loop_of(96, false, [](const Value& h, const Value& v, const Value& x) -> Values {
        return {tanh(transpose(v, {1, 0}) + x), v * 0.5 + h, h};
      }));
  CHECK_FALSE(says(turned, "parts"));
}

// A gated step of `rows` samples: products with the carried value on the left, joined
// with what is read.
Graph gated_loop(std::int64_t rows, bool spikes, std::int64_t n = 48) {
  const auto b = Builder::create();
  const auto input = [&](Shape s) { return b->input({DType::f64, std::move(s)}); };
  const Value h = input({rows, n}), xs = input({40, rows, 8});
  const Value w = input({n + 8, n}), u = input({n, n}), bias = input({n});
  const auto turn = [&](const Values& in) -> Values {
    const Value now = spikes ? astype(greater(in[0], 0.3), DType::f64) : in[0];
    const Value gate = sigmoid(matmul(concat({in[1], now}, 1), w * 0.1) + bias);
    return {tanh(in[0] * gate + matmul(gate * now, u * 0.1)), gate};
  };
  const ScanResult r = scan(turn, {h}, {xs}, {.length = 40});
  return b->finish(Values{r.carry[0], r.ys[0]});
}

// Bits of one thread at two to four, and sums near those of the interpreter.
std::string checked_products(const Graph& g) {
  const std::vector<Array> in = inputs_of(g), want = interpret(g, in);
  std::vector<Array> first;
  std::string text;
  for (const int threads : {1, 2, 3, 4}) {
    Plan plan(g, {.threads = threads});
    std::vector<Array> got;
    plan.run(in, got);
    plan.run(in, got);
    if (threads == 1) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(got[i] == first[i]);
      testing::check_close("plan", got[i], want[i], 1e-9);
    }
    text = plan.describe();
  }
  return text;
}

TEST_CASE("turns with products of their rows run part by part") {
  for (const bool spikes : {false, true})
    for (const std::int64_t rows : {8, 16, 37, 64}) {
      CAPTURE(rows);
      const std::string text = checked_products(gated_loop(rows, spikes));
      CHECK(says(text, rows == 37   ? " in 3 parts"
                       : rows == 64 ? " in 4 parts"
                                    : " in 2 parts"));
    }
}

TEST_CASE("large weights of spikes are laid out in tiles before the loop") {
  CHECK(says(checked_products(gated_loop(17, true, 260)), "\ntile "));
  CHECK_FALSE(says(checked_products(gated_loop(17, true)), "\ntile "));
}

TEST_CASE("few rows are not cut") {
  CHECK_FALSE(says(checked_products(gated_loop(7, false)), "parts"));
}

}  // namespace plan_slices_test
