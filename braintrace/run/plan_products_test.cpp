// SPDX-License-Identifier: Apache-2.0
// Products that are added to each other.
#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/ops/registry.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/run/plan.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"

namespace plan_products_test {

using namespace braintrace;

namespace {

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1))
    ++n;
  return n;
}

std::vector<Array> drawn_inputs(const Graph& g) {
  std::vector<Array> in;
  for (ValueId v : g.inputs())
    in.push_back(random_normal(rng_key(in.size() + 1), g.type(v).shape, g.type(v).dtype));
  return in;
}

// The plan's description; its values are the interpreter's, twice.
std::string described(const std::string& text, const PlanOptions& options = {}) {
  const Graph g = parse(text);
  const std::vector<Array> in = drawn_inputs(g), want = interpret(g, in);
  Plan plan(g, options);
  for (int run = 0; run < 2; ++run) {
    std::vector<Array> out;
    plan.run(drawn_inputs(g), out);  // of its own: a paired output may overwrite one
    REQUIRE(out.size() == want.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      testing::check_close("output", out[i], want[i], tol::f64);
  }
  return plan.describe();
}

}  // namespace

TEST_CASE("of two products that are only added the second lands on the first") {
  const std::string plan = described(R"(in %0:f64[7,5] %1:f64[5,9] %2:f64[3,7] %3:f64[3,9]
      %4 = matmul %0 %1
      %5 = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[], rhs_contract=[0]} %2 %3
      %6 = add %4 %5
      out %6)");
  CHECK(count(plan, "gemm") == 2);
  CHECK(count(plan, " added") == 1);
  CHECK(count(plan, "fused") == 0);
}

TEST_CASE(
    "products that somebody else reads, or that are added to themselves, stay apart") {
  CHECK(count(described(R"(in %0:f64[7,5] %1:f64[5,9] %2:f64[7,4] %3:f64[4,9]
      %4 = matmul %0 %1
      %5 = matmul %2 %3
      %6 = add %4 %5
      %7 = tanh %5
      out %6 %7)"),
              " added") == 0);
  CHECK(count(described(R"(in %0:f64[7,5] %1:f64[5,9]
      %2 = matmul %0 %1
      %3 = add %2 %2
      out %3)"),
              " added") == 0);
}

TEST_CASE("products are added to an input where it lies") {
  const std::string plan = described(
      R"(in %0:f64[7,9] %1:f64[4,7] %2:f64[4,9] %3:f64[3,7] %4:f64[3,9]
      %5 = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[], rhs_contract=[0]} %1 %2
      %6 = add %0 %5
      %7 = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[], rhs_contract=[0]} %3 %4
      %8 = add %7 %6
      out %8)",
      {.in_place = {{0, 0}}});
  CHECK(count(plan, " added") == 2);
  CHECK(count(plan, "fused") == 0);
}

TEST_CASE("an input that is read behind its sum with products keeps its memory") {
  described(R"(in %0:f64[5,5] %1:f64[5,5] %2:f64[5,5]
      %3 = matmul %1 %2
      %4 = add %0 %3
      %5 = matmul %4 %0
      out %4 %5)",
            {.in_place = {{0, 0}}});
  described(R"(in %0:f64[5,5] %1:f64[5,5]
      %2 = matmul %0 %1
      %3 = add %0 %2
      out %3)",
            {.in_place = {{0, 0}}});
}

TEST_CASE(
    "a sum of an input and a product that goes on, or has another type, is no result") {
  CHECK(count(described(R"(in %0:f64[7,9] %1:f64[7,5] %2:f64[5,9]
      %3 = matmul %1 %2
      %4 = add %0 %3
      %5 = tanh %4
      out %5)"),
              " added") == 0);
}

TEST_CASE("a loop whose carry is two added products reads the old carry to the end") {
  const std::string plan = described(R"(in %0:f64[4,4] %1:f64[6,4,4]
      %2:f64[4,4], %3:f64[6,4,4] = scan {body={
        in %0:f64[4,4] %1:f64[4,4]
        %2 = matmul %0 %1
        %3 = matmul %1 %0
        %4 = add %2 %3
        out %4 %4
      }, length=6, num_carry=1, num_consts=0, reverse=false} %0 %1
      out %2 %3)");
  CHECK(count(plan, " added") == 1);
}

TEST_CASE("a sum of products does not take memory that the second one reads") {
  described(R"(in %0:f64[5,5] %1:f64[5,5] %2:f64[5,5]
      %3 = matmul %1 %2
      %4 = matmul %0 %2
      %5 = add %3 %4
      out %5)",
            {.in_place = {{0, 0}}});
}

TEST_CASE("two sums of products in one chain are two results") {
  const std::string plan = described(R"(in %0:f64[4,6] %1:f64[6,8] %2:f64[4,6] %3:f64[6,8]
      %4 = matmul %0 %1
      %5 = matmul %2 %3
      %6 = add %4 %5
      %7 = matmul %2 %1
      %8 = matmul %0 %3
      %9 = add %7 %8
      %10 = mul %6 %9
      out %10)");
  CHECK(count(plan, " added") == 2);
  CHECK(count(plan, "fused 1 steps") == 1);
}

TEST_CASE("a signal meets what a step moves in one pass, whatever stage adds to it") {
  const std::string plan = described(
      R"(in %0:f64[32,42,32] %1:f64[32,1,1] %2:f64[32,32] %3:f64[32,32] %4:f64[1,42,1] %5:f64[32]
      %6 = mul %2 %3
      %7 = reshape {shape=[32,1,32]} %6
      %8 = broadcast {shape=[32,42,32]} %7
      %9 = broadcast {shape=[32,42,32]} %4
      %10 = mul %8 %9
      %11 = broadcast {shape=[32,42,32]} %1
      %12 = mul %0 %11
      %13 = add %12 %10
      %14 = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[], rhs_contract=[0]} %12 %5
      out %6 %13 %14)");
  CHECK(count(plan, "gemm") == 0);
  CHECK(count(plan, "fused") == 2);
  CHECK(count(plan, "1 summed over [32]") == 1);
}

TEST_CASE("a signal does not wait for a step that waits for what it earned") {
  const std::string plan = described(R"(in %0:f64[32,42,32] %1:f64[32,1,1] %2:f64[32]
      %3 = broadcast {shape=[32,42,32]} %1
      %4 = mul %0 %3
      %5 = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[], rhs_contract=[0]} %4 %2
      %6 = tanh %5
      %7 = reshape {shape=[1,42,32]} %6
      %8 = broadcast {shape=[32,42,32]} %7
      %9 = add %4 %8
      out %9 %5)");
  CHECK(count(plan, "1 summed over [32]") == 1);
  CHECK(count(plan, "gemm") == 0);
}

}  // namespace plan_products_test
