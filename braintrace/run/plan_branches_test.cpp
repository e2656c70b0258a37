// SPDX-License-Identifier: Apache-2.0
// What a branch makes where the branch's result belongs is not there before it runs.
#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/registry.h"
#include "braintrace/run/plan.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"

namespace plan_branches_test {

using namespace braintrace;

namespace {

// Twice with other numbers, so that memory of the first run does not help.
void check_plan(std::string_view text) {
  const Graph g = parse(text);
  Plan plan(g, {.threads = 1});
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    std::vector<Array> in, out;
    for (const Type& t : g.input_types())
      in.push_back(t.dtype == DType::boolean
                       ? scalar(0, DType::boolean)
                       : random_uniform(fold_in(rng_key(seed), in.size()), t.shape, -1, 1,
                                        t.dtype));
    plan.run(in, out);
    const std::vector<Array> want = eval_graph(g, in);
    for (std::size_t i = 0; i < out.size(); ++i)
      testing::check_close("output " + std::to_string(i), out[i], want[i], tol::f64);
  }
}

}  // namespace

TEST_CASE("a result of a branch that a kernel wants packed is copied after it is made") {
  CHECK_NOTHROW(check_plan(R"(
    in %0:bool[] %1:f64[3,4]
    %2:f64[3,4], %3:f64[12] = cond {false_branch={
        in %0:f64[3,4]
        %1:f64[3,4] = tanh %0
        %2:f64[4,3] = transpose {permutation=[1,0]} %1
        %3:f64[12] = reshape {shape=[12]} %2
        %4:f64[12] = cumsum {axis=0, reverse=false} %3
        out %1 %4
      }, true_branch={
        in %0:f64[3,4]
        %1:f64[12] = reshape {shape=[12]} %0
        out %0 %1
      }} %0 %1
    out %2 %3)"));
}

TEST_CASE(
    "a result of a branch that a loop in it multiplies with is packed after it is made") {
  CHECK_NOTHROW(check_plan(R"(
    in %0:bool[] %1:f64[17,17] %2:f64[17,17]
    %3:f64[17,17], %4:f64[17,17] = cond {false_branch={
        in %0:f64[17,17] %1:f64[17,17]
        %2:f64[17,17] = tanh %0
        %3:f64[17,17] = scan {body={
            in %0:f64[17,17] %1:f64[17,17]
            %2:f64[17,17] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[], rhs_contract=[0]} %1 %0
            %3:f64[17,17] = sin %2
            out %3
          }, length=3, num_carry=1, num_consts=1, reverse=false} %2 %1
        out %2 %3
      }, true_branch={
        in %0:f64[17,17] %1:f64[17,17]
        out %0 %1
      }} %0 %1 %2
    out %3 %4)"));
}

}  // namespace plan_branches_test
