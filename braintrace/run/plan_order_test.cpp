// SPDX-License-Identifier: Apache-2.0
// Who overwrites a value runs behind those who read it.
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/run/plan.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"

namespace plan_order_test {

using namespace braintrace;

namespace {

// Runs a program whose first input and output are paired; is the memory the same?
bool stays_in_place(const Graph& g) {
  Plan plan(g, {.threads = 1, .in_place = {{0, 0}}});
  std::vector<Array> in, out;
  for (const Type& t : g.input_types())
    in.push_back(random_normal(rng_key(in.size()), t.shape, t.dtype));
  const void* memory = in[0].raw();
  const std::vector<Array> want = interpret(g, in);
  plan.run(in, out);
  for (std::size_t i = 0; i < want.size(); ++i)
    testing::check_close(std::to_string(i), out[i], want[i], tol::f64);
  return out[0].raw() == memory;
}

}  // namespace

TEST_CASE("a trace is updated in place though a product written behind it reads it") {
  CHECK(stays_in_place(parse(R"(in %0:f64[6,4] %1:f64[4] %2:f64[6,4]
      %3:f64[6,4] = broadcast {shape=[6,4]} %1
      %4:f64[6,4] = mul %0 %3
      %5:f64[6,4] = add %4 %2
      %6:f64[6] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                               rhs_contract=[0]} %0 %1
      out %5 %6)")));
}

TEST_CASE("readers under another shape count") {
  CHECK(stays_in_place(parse(R"(in %0:f64[6,4] %1:f64[4]
      %2:f64[6,4] = add %0 %0
      %3:f64[2,12] = reshape {shape=[2,12]} %2
      %4:f64[6,4] = reshape {shape=[6,4]} %3
      %5:f64[3,2,4] = reshape {shape=[3,2,4]} %0
      %6:f64[3,2] = dot_general {lhs_batch=[], lhs_contract=[2], rhs_batch=[],
                                 rhs_contract=[0]} %5 %1
      out %4 %6)")));
}

TEST_CASE("readers that wait for the update keep its input alive") {
  CHECK_FALSE(stays_in_place(parse(R"(in %0:f64[4] %1:f64[4]
      %2:f64[4] = mul %0 %1
      %3:f64[] = reduce_sum {axes=[0]} %2
      %4:f64[4] = broadcast {shape=[4]} %3
      %5:f64[4] = add %4 %0
      out %2 %5)")));
}

TEST_CASE("two updates that would wait for each other are ordered all the same") {
  const Graph g = parse(R"(in %0:f64[3,3] %1:f64[3,3]
      %2:f64[3,3] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                 rhs_contract=[0]} %0 %1
      %3:f64[3,3] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %0 %1
      out %2 %3)");
  Plan plan(g, {.threads = 1, .in_place = {{0, 0}, {1, 1}}});
  std::vector<Array> in, out;
  for (int i : {1, 2}) in.push_back(random_normal(rng_key(i), {3, 3}, DType::f64));
  const std::vector<Array> want = interpret(g, in);
  plan.run(in, out);
  for (std::size_t i : {0U, 1U})
    testing::check_close(std::to_string(i), out[i], want[i], tol::f64);
}

}  // namespace plan_order_test
