// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/plan.h"

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/random_graph.h"
#include "braintrace/testing/tolerance.h"

namespace plan_test {

using namespace braintrace;

namespace {

// Runs the plan twice, the second time on the arrays of the first.
std::vector<Array> planned(const Graph& g, const std::vector<Array>& inputs) {
  Plan plan(g);
  std::vector<Array> first, again;
  plan.run(inputs, first);
  again = first;
  for (Array& a : again) a = full(a.shape(), 1, a.dtype());
  plan.run(inputs, again);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] == again[i]);
  return first;
}

void check_equal(const std::string& text, const std::vector<Array>& inputs) {
  const Graph g = parse(text);
  const std::vector<Array> got = planned(g, inputs), want = interpret(g, inputs);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == want[i]);
  }
}

std::string description(const std::string& text) { return Plan(parse(text)).describe(); }

bool says(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("a plan of nothing copies its inputs and constants") {
  check_equal(R"(in %0:f64[2] %1:i32[]
      %2:f32[2] = constant {value=f32[2](1, 2)}
      out %0 %2 %1 %0)",
              {array({3, 4}, DType::f64), scalar(5, DType::i32)});
}

TEST_CASE("reshapes, transposes, slices and broadcasts of inputs move no data") {
  const std::string text = R"(in %0:f64[2,3]
      %1:f64[3,2] = transpose {permutation=[1,0]} %0
      %2:f64[6] = reshape {shape=[6]} %0
      %3:f64[2] = slice {size=[2], start=[1], step=[3]} %2
      %4:f64[3,2] = broadcast {shape=[3,2]} %3
      %5:f64[3,2] = add %1 %4
      out %5)";
  check_equal(text, {array({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f64)});
  check_equal(R"(in %0:f64[2,3]
      %1:f64[3,2] = transpose {permutation=[1,0]} %0
      %2:f64[6] = reshape {shape=[6]} %1
      out %2 %1)",
              {array({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f64)});
}

TEST_CASE("a small array that is read many times across its rows is turned once") {
  const auto text = [](const std::string& times) {
    return "in %0:f64[" + times + R"(,2,3] %1:f64[3,2]
      %2:f64[2,3] = transpose {permutation=[1,0]} %1
      %3:f64[)" +
           times + R"(,2,3] = broadcast {shape=[)" + times + R"(,2,3]} %2
      %4:f64[)" +
           times + R"(,2,3] = mul %0 %3
      out %4)";
  };
  std::vector<double> many;
  for (int i = 0; i < 96; ++i) many.push_back(0.5 * i);
  const Array small = array({3, 2}, {1, 2, 3, 4, 5, 6}, DType::f64);
  check_equal(text("16"), {array({16, 2, 3}, many, DType::f64), small});
  CHECK(says(description(text("16")), "copy"));
  CHECK_FALSE(says(description(text("4")), "copy"));
}

TEST_CASE("parts of a concatenation are written where they belong") {
  const std::string text = R"(in %0:f64[2,2] %1:f64[2,1]
      %2:f64[2,2] = exp %0
      %3:f64[2,3] = concatenate {axis=1} %2 %1
      %4:f64[3,2] = transpose {permutation=[1,0]} %3
      %5:f64[5,2] = concatenate {axis=0} %2 %4
      out %5 %3)";
  check_equal(
      text, {array({2, 2}, {1, 2, 3, 4}, DType::f64), array({2, 1}, {5, 6}, DType::f64)});
  const std::string stacked = R"(in %0:f64[2]
      %1:f64[2] = exp %0
      %2:f64[1,2] = reshape {shape=[1,2]} %1
      %3:f64[2] = neg %0
      %4:f64[1,2] = reshape {shape=[1,2]} %3
      %5:f64[2,2] = concatenate {axis=0} %2 %4
      out %5)";
  check_equal(stacked, {array({1, 2}, DType::f64)});
  CHECK_FALSE(says(description(stacked), "copy"));
}

TEST_CASE("a scan updates its carry in place and stacks where the output lies") {
  const std::string text = R"(in %0:f64[2] %1:f64[3,2] %2:f64[2]
      %3:f64[2], %4:f64[3,2] = scan {body={ in %0:f64[2] %1:f64[2] %2:f64[2]
              %3:f64[2] = mul %1 %0  %4:f64[2] = add %3 %2  %5:f64[2] = exp %4
              out %4 %5 },
          length=3, num_carry=1, num_consts=1, reverse=false} %2 %0 %1
      out %3 %4)";
  check_equal(text,
              {array({1, 2}, DType::f64), array({3, 2}, {1, 2, 3, 4, 5, 6}, DType::f64),
               array({0.5, 0.25}, DType::f64)});
  const std::string plan = description(text);
  CHECK_FALSE(says(plan, "copy"));
}

TEST_CASE("carries that swap, stay, or are stacked keep their values") {
  for (const std::string reverse : {"false", "true"})
    for (const std::string length : {"0", "1", "2", "5"}) {
      CAPTURE(length);
      const std::string text = "in %0:f64[2] %1:f64[2] %2:f64[2] %3:f64[" + length +
                               R"(,2]
          %4, %5, %6, %7, %8 = scan {body={ in %0:f64[2] %1:f64[2] %2:f64[2] %3:f64[2]
                  %4:f64[2] = add %0 %3  %5:f64[2] = mul %4 %2
                  out %1 %0 %5 %5 %3 },
              length=)" + length +
                               ", num_carry=3, num_consts=0, reverse=" + reverse +
                               "} %0 %1 %2 %3 out %4 %5 %6 %7 %8";
      const auto n = std::stoll(length);
      std::vector<double> xs;
      for (int i = 0; i < 2 * n; ++i) xs.push_back(i * 0.25);
      check_equal(text, {array({1, 2}, DType::f64), array({3, 4}, DType::f64),
                         array({5, 6}, DType::f64), array({n, 2}, xs, DType::f64)});
    }
}

TEST_CASE("passes with more values than a worker can hold are run in parts") {
  const auto b = Builder::create();
  const Type type{DType::f64, {16, 2048}};
  const Value x = b->input(type);
  std::vector<Array> inputs{full(type.shape, 0.5, DType::f64)};
  Values outs;
  for (int i = 0; i < 80; ++i) {
    const Value y = b->input(type);
    inputs.push_back(full(type.shape, 0.01 * i, DType::f64));
    outs.push_back(sum(x * y + 0.25 * i, {.axes = {0}}));  // 82 inputs, 80 sums
    outs.push_back(abs(y - x));
  }
  Value chain = b->input({DType::f64, {4}});
  inputs.push_back(array({1, 2, 3, 4}, DType::f64));
  for (int i = 0; i < 3000; ++i) chain = maximum(chain, 0.001 * i) + 0.5;
  outs.push_back(chain);
  const Graph g = b->finish(outs);
  const std::vector<Array> got = planned(g, inputs), want = interpret(g, inputs);
  for (std::size_t i = 0; i < got.size(); ++i)
    testing::check_close(std::to_string(i), got[i], want[i], tol::f64);
  CHECK(want.back().at(0) > 1000);
}

TEST_CASE("a trace of two states goes through memory once though its signal comes late") {
  const auto b = Builder::create();
  const Value eps = b->input({DType::f32, {8, 64, 64, 2}});
  const Value d = b->input({DType::f32, {8, 1, 64}}), e = b->input(d.type());
  const Value x = b->input({DType::f32, {8, 64, 1}});
  const Value h = b->input({DType::f32, {8, 64}}), w = b->input({DType::f32, {64, 64}});
  const Value s = reshape(tanh(dot(tanh(h), w)), {8, 1, 64});
  const auto state = [&](std::int64_t a) {
    return squeeze(slice_axis(eps, -1, a, 1), -1);
  };
  const Value first = d * state(0) + e * state(1), second = e * state(1);
  const Value next = stack(std::vector{first + x * d, second + x * e}, -1);
  const Graph g = b->finish(Values{next, sum(s * first + d * second, {.axes = {0}})});
  Plan plan(g, {.in_place = {{0, 0}}});
  const std::string text = plan.describe();
  CHECK(says(text, "1 summed over [8]"));
  CHECK_FALSE(says(text, "over [8,64,64]"));
  CHECK_FALSE(says(text, "copy"));
  std::vector<Array> in, out;
  for (const Type& t : g.input_types())
    in.push_back(random_normal(rng_key(in.size()), t.shape, t.dtype));
  const std::vector<Array> want = interpret(g, in);
  plan.run(in, out);
  CHECK(out[0] == want[0]);
  testing::check_close("sum", out[1], want[1], tol::f32);
}

TEST_CASE("strided values from outside are packed once before the loop") {
  const std::string text = R"(in %0:f64[2,2] %1:f64[2]
      %2:f64[2,2] = transpose {permutation=[1,0]} %0
      %3:f64[2] = scan {body={ in %0:f64[2,2] %1:f64[2]
              %2:f64[2,2] = cumsum {axis=0, reverse=false} %0
              %3:f64[2] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                       rhs_contract=[0]} %2 %1
              out %3 },
          length=3, num_carry=1, num_consts=1, reverse=false} %2 %1
      out %3)";
  check_equal(text,
              {array({2, 2}, {1, 2, 3, 4}, DType::f64), array({1, -1}, DType::f64)});
}

TEST_CASE("while runs until its condition fails, also not at all") {
  const std::string text = R"(in %0:f64[] %1:f64[] %2:f64[]
      %3, %4 = while {body={ in %0:f64[] %1:f64[] %2:f64[]
                             %3:f64[] = add %1 %0 %4:f64[] = add %1 %2 out %3 %4 },
                      cond={ in %0:f64[] %1:f64[] %2:f64[] %3:bool[] = less %1 %0 out %3 },
                      num_body_consts=1, num_cond_consts=1} %0 %1 %2 %2
      out %3 %4)";
  for (const double limit : {-1.0, 0.5, 3.0, 4.0})
    check_equal(
        text, {scalar(limit, DType::f64), scalar(1, DType::f64), scalar(0, DType::f64)});
}

TEST_CASE("cond runs the branch its predicate picks") {
  const std::string text = R"(in %0:bool[] %1:f64[2]
      %2, %3 = cond {false_branch={ in %0:f64[2] %1:f64[2] = exp %0 out %1 %1 },
                     true_branch={ in %0:f64[2] %1:f64[2] = neg %0 out %0 %1 }} %0 %1
      %4:f64[2] = add %2 %3
      out %4 %2)";
  for (const bool p : {false, true})
    check_equal(text, {scalar(p, DType::boolean), array({1, 2}, DType::f64)});
}

TEST_CASE("Plan refuses inputs of another number or type") {
  Plan plan(parse("in %0:f64[2] out %0"));
  std::vector<Array> out;
  CHECK_THROWS_WITH_AS(plan.run({}, out), "Plan::run: the program has 1 inputs, got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(plan.run(std::vector{ones({2})}, out),
                       "Plan::run: input 0 must be f64[2], got f32[2]", UserError);
  CHECK_THROWS_WITH_AS(
      Plan(parse("in %0:f64[2] %1:f64[3] out %1"), {.in_place = {{0, 0}}}),
      "Plan: in_place pairs input 0 of type f64[2] with output 0 of type f64[3]",
      UserError);
}

TEST_CASE("a paired output takes the memory of its input unless someone else holds it") {
  const Graph g = parse(R"(in %0:f64[2] %1:f64[2]
      %2:f64[2] = mul %0 %1 out %2)");
  Plan plan(g, {.in_place = {{0, 0}}});
  std::vector<Array> in = {array({1, 2}, DType::f64), array({3, 4}, DType::f64)}, out;
  for (int i = 0; i < 3; ++i) {
    plan.run(in, out);
    in[0] = out[0];
  }
  CHECK(out[0] == array({27, 128}, DType::f64));
  const Array held = in[0];
  plan.run(in, out);
  CHECK(held == array({27, 128}, DType::f64));
  CHECK(out[0] == array({81, 512}, DType::f64));
}

TEST_CASE("a paired output is kept apart while its input is still read") {
  const Graph g = parse(R"(in %0:f64[2] %1:f64[2]
      %2:f64[2] = mul %0 %1
      %3:f64[] = reduce_sum {axes=[0]} %2
      %4:f64[2] = broadcast {shape=[2]} %3
      %5:f64[2] = add %4 %0
      out %2 %5)");
  Plan plan(g, {.in_place = {{0, 0}}});
  std::vector<Array> in = {array({1, 2}, DType::f64), array({3, 4}, DType::f64)}, out;
  for (int i = 0; i < 3; ++i) {
    const std::vector<Array> want = interpret(g, in);
    plan.run(in, out);
    CHECK(out[0] == want[0]);
    CHECK(out[1] == want[1]);
    in[0] = out[0];
  }
}

TEST_CASE("products with spikes on the left count them") {
  const std::string text = R"(in %0:f64[2,3] %1:f64[2,2] %2:f64[5,16]
      %3:bool[2,3] = greater_equal %0 %0
      %4:f64[2,3] = convert {dtype=f64} %3
      %5:f64[2,5] = concatenate {axis=1} %1 %4
      %6:f64[2,16] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                  rhs_contract=[0]} %5 %2
      out %6)";
  CHECK(says(description(text), "gemm 2x5x16 of events"));
  std::vector<double> w(80, 0.5);
  check_equal(text, {zeros({2, 3}, DType::f64), ones({2, 2}, DType::f64),
                     array({5, 16}, w, DType::f64)});
}

TEST_CASE("what one stage needs is computed there and not stored before") {
  const std::string plan = description(R"(in %0:f64[4,4] %1:f64[4,4]
      %2:f64[4,4] = sigmoid %0
      %3:f64[4,4] = sigmoid %1
      %4:f64[4,4] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                 rhs_contract=[0]} %3 %0
      %5:f64[4,4] = mul %2 %4
      out %5)");
  CHECK(says(plan, "1 steps over [16]: sigmoid, 1 in, 1 out"));
  CHECK(says(plan, "2 steps over [16]: sigmoid mul, 2 in, 1 out"));
}

TEST_CASE("a chain that reads a value for the last time writes into its memory") {
  const Graph g = parse(R"(in %0:f64[64,64]
      %1:f64[64,64] = cumsum {axis=0, reverse=false} %0
      %2:f64[64,64] = exp %1
      %3:f64[64,64] = cumsum {axis=0, reverse=false} %2
      out %3)");
  CHECK(Plan(g).arena_bytes() == 64 * 64 * 8);
  check_equal(print(g), {full({64, 64}, 1e-3, DType::f64)});
}

TEST_CASE("sums over leading axes of a large chain run in the chain's own pass") {
  // A trace that decays, and its product with a signal summed over the batch.
  const std::string text = R"(in %0:f64[8,70,64] %1:f64[8,1,64] %2:f64[8,70,1]
      %3:f64[8,70,64] = broadcast {shape=[8,70,64]} %1
      %4:f64[8,70,64] = broadcast {shape=[8,70,64]} %2
      %5:f64[8,70,64] = mul %0 %3
      %6:f64[8,70,64] = add %5 %4
      %7:f64[8,70,64] = mul %6 %3
      %8:f64[70,64] = reduce_sum {axes=[0]} %7
      out %6 %8)";
  const Graph g = parse(text);
  Plan plan(g, {.in_place = {{0, 0}}});
  CHECK(says(plan.describe(), "1 summed over [8], 3 in, 2 out"));
  CHECK(plan.arena_bytes() == 0);
  std::vector<Array> in, out;
  for (const Type& t : g.input_types()) {
    Array a(DType::f64, t.shape);
    for (std::int64_t i = 0; i < a.size(); ++i)
      a.mutable_data<double>()[i] = static_cast<double>(i % 97) * 0.01;
    in.push_back(std::move(a));
  }
  for (int i = 0; i < 3; ++i) {
    const std::vector<Array> want = interpret(g, in);
    plan.run(in, out);
    CHECK(out[0] == want[0]);
    CHECK(out[1] == want[1]);
    in[0] = out[0];
  }
}

TEST_CASE("pad fills and copies, also around nothing") {
  const std::string text = R"(in %0:f64[2,3] %1:f64[0,2]
      %2:f64[6,3] = pad {high=[1,0], interior=[2,0], low=[1,0], value=0.5} %0
      %3:f64[2,3] = pad {high=[1,0], interior=[1,1], low=[1,0], value=-0.0} %1
      out %2 %3)";
  check_equal(text,
              {array({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f64), zeros({0, 2}, DType::f64)});
  CHECK_FALSE(says(description(text), "eval"));
}

TEST_CASE("trainable products of every kind run on kernels") {
  const auto builder = Builder::create();
  const auto f32 = [&](Shape s) { return builder->input({DType::f32, std::move(s)}); };
  const Value x = f32({3, 2, 4}), rows = f32({5, 6});
  const Value index = builder->input({DType::i32, {3}});
  const Values out = {grouped_matmul(x, f32({2, 4, 5}), f32({2, 5})),
                      lora_matmul(x, f32({4, 1}), f32({1, 3}), 0.5, f32({3})),
                      einsum("bhd,hde->bhe", x, f32({2, 4, 3})), embedding(index, rows)};
  CHECK_FALSE(says(Plan(builder->finish(out)).describe(), "eval"));
}

TEST_CASE("a chain that reads one value under two names overwrites it after both") {
  check_equal(R"(in %0:f64[3] %1:f64[3]
      %2:f64[3] = cumsum {axis=0, reverse=false} %0
      %3:f64[3] = stop_gradient %2
      %4:f64[3] = mul %1 %3
      %5:f64[3] = sub %4 %2
      %6:f64[3] = cumsum {axis=0, reverse=false} %4
      %7:f64[3] = cumsum {axis=0, reverse=false} %5
      out %6 %7)",
              {array({1, 2, 3}, DType::f64), array({5, 7, 9}, DType::f64)});
}

TEST_CASE("random programs give the interpreter's values") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const testing::Program p = testing::random_graph(seed);
    const std::vector<Array> want = interpret(p.graph, p.inputs);
    const std::vector<Array> got = planned(p.graph, p.inputs);
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(seed);
      CAPTURE(i);
      const double allowed = testing::value_tolerance(want[i].dtype());
      CHECK(testing::worst_error(got[i], want[i]).error <= allowed);
    }
  }
}

}  // namespace plan_test
