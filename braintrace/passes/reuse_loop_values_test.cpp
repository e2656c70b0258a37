// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/reuse_loop_values.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/ops/registry.h"
#include "braintrace/passes/dce.h"
#include "braintrace/passes/split_scan.h"
#include "braintrace/testing/pass_check.h"

namespace reuse_loop_values_test {

using namespace braintrace;
using braintrace::testing::check_same_derivatives;
using braintrace::testing::check_same_values;

namespace {

// h' = sigmoid(h W); hands out h W
Graph program(const std::string& behind) {
  return parse(fmt::format(R"(in %0:f64[4,4] %1:f64[5,4]
    %2:f64[5,4], %3:f64[6,5,4] = scan {{body={{
        in %0:f64[4,4] %1:f64[5,4]
        %2:f64[5,4] = matmul %1 %0
        %3:f64[5,4] = sigmoid %2
        out %3 %2}}, length=6, num_carry=1, num_consts=1, reverse=false}} %0 %1
    {})",
                           behind));
}

std::string kept(const Graph& before) { return print(reuse_loop_values(before)); }

}  // namespace

TEST_CASE("a function the loop computes is taken from it") {
  const Graph before = program("%4:f64[6,5,4] = sigmoid %3\n out %2 %4");
  const Graph after = dce(split_scan(reuse_loop_values(before)));
  check_same_values(before, after);
  check_same_derivatives(before, after);
  CHECK(print(after) == print(parse(R"(in %0:f64[4,4] %1:f64[5,4]
    %2:f64[5,4], %3:f64[6,5,4] = scan {body={
        in %0:f64[4,4] %1:f64[5,4]
        %2:f64[5,4] = matmul %1 %0
        %3:f64[5,4] = sigmoid %2
        out %3 %3}, length=6, num_carry=1, num_consts=1, reverse=false} %0 %1
    out %2 %3)")));
}

TEST_CASE("other functions, cheap ones and stacks with other readers stay") {
  for (const char* behind :
       {"%4:f64[6,5,4] = tanh %3\n out %2 %4", "%4:f64[6,5,4] = neg %3\n out %2 %4",
        "%4:f64[6,5,4] = sigmoid %3\n out %3 %4"}) {
    CAPTURE(behind);
    const Graph before = program(behind);
    CHECK(kept(before) == print(before));
  }
}

}  // namespace reuse_loop_values_test
