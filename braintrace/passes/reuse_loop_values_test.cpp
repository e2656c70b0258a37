// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/reuse_loop_values.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/ir/op_def.h"
#include "braintrace/ops/registry.h"
#include "braintrace/passes/cse.h"
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

// h' = tanh(v), g' = v with v = 0.5 g + h W; hands out g and h W
Graph two_stacks(const std::string& behind) {
  return parse(fmt::format(R"(in %0:f64[4,4] %1:f64[5,4] %2:f64[5,4]
    %3:f64[5,4], %4:f64[5,4], %5:f64[6,5,4], %6:f64[6,5,4] = scan {{body={{
        in %0:f64[4,4] %1:f64[5,4] %2:f64[5,4]
        %3:f64[5,4] = matmul %1 %0
        %4:f64[] = constant {{value=f64[](0.5)}}
        %5:f64[5,4] = broadcast {{shape=[5,4]}} %4
        %6:f64[5,4] = mul %2 %5
        %7:f64[5,4] = add %6 %3
        %8:f64[5,4] = tanh %7
        out %8 %7 %2 %3}}, length=6, num_carry=2, num_consts=1, reverse=false}} %0 %1 %2
    %7:f64[] = constant {{value=f64[](0.5)}}
    %8:f64[6,5,4] = broadcast {{shape=[6,5,4]}} %7
    %9:f64[6,5,4] = mul %5 %8
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

TEST_CASE("what two stacked values come together in is taken from the loop") {
  const Graph before = two_stacks(
      "%10:f64[6,5,4] = add %9 %6\n %11:f64[6,5,4] = neg %10\n"
      "%12:f64[6,5,4] = mul %10 %11\n out %3 %4 %12");
  const Graph after = dce(split_scan(dce(reuse_loop_values(before))));
  check_same_values(before, after);
  check_same_derivatives(before, after);
  CHECK(print(after) == print(parse(R"(in %0:f64[4,4] %1:f64[5,4] %2:f64[5,4]
    %3:f64[5,4], %4:f64[5,4], %5:f64[6,5,4] = scan {body={
        in %0:f64[4,4] %1:f64[5,4] %2:f64[5,4]
        %3:f64[5,4] = matmul %1 %0
        %4:f64[] = constant {value=f64[](0.5)}
        %5:f64[5,4] = broadcast {shape=[5,4]} %4
        %6:f64[5,4] = mul %2 %5
        %7:f64[5,4] = add %6 %3
        %8:f64[5,4] = tanh %7
        out %8 %7 %7}, length=6, num_carry=2, num_consts=1, reverse=false} %0 %1 %2
    %6:f64[6,5,4] = neg %5
    %7:f64[6,5,4] = mul %5 %6
    out %3 %4 %7)")));
}

TEST_CASE("stacked values that come together otherwise, or are read beside, stay") {
  for (const char* behind :
       {"%10:f64[6,5,4] = sub %9 %6\n out %3 %4 %10",        // not what the body does
        "%10:f64[6,5,4] = add %9 %6\n out %3 %4 %6 %10"}) {  // one stack is read beside
    CAPTURE(behind);
    const Graph before = two_stacks(behind);
    CHECK(kept(before) == print(before));
  }
  const Graph other = two_stacks(
      "%10:f64[] = constant {value=f64[](0.25)}\n"
      "%11:f64[6,5,4] = broadcast {shape=[6,5,4]} %10\n"
      "%12:f64[6,5,4] = mul %5 %11\n %13:f64[6,5,4] = add %12 %6\n out %3 %4 %13");
  CHECK(kept(other) == print(other));  // another number
}

TEST_CASE("a loop that does not read a stacked value keeps nobody from it") {
  const Graph before = two_stacks(R"(%10:f64[6,5,4] = add %9 %6
    %11:f64[5,4] = scan {body={
        in %0:f64[5,4] %1:f64[5,4] %2:f64[5,4]
        %3:f64[5,4] = add %0 %2
        out %3}, length=6, num_carry=1, num_consts=0, reverse=false} %1 %6 %10
    out %3 %4 %11)");
  const Graph after = dce(split_scan(dce(reuse_loop_values(before))));
  check_same_values(before, after);
  CHECK(print(after).find("out %8 %7 %7\n}") != std::string::npos);
}

TEST_CASE("what a loop hands out is not computed again, products by constants neither") {
  // h of all steps; h W, which is handed out; sigmoid of that, which the loop has
  const Graph before = parse(R"(in %0:f64[4,4] %1:f64[4] %2:f64[5,4]
    %3:f64[5,4], %4:f64[6,5,4], %5:f64[6,5,4] = scan {body={
        in %0:f64[4,4] %1:f64[4] %2:f64[5,4]
        %3:f64[5,4] = matmul %2 %0 %1
        %4:f64[5,4] = sigmoid %3
        out %4 %2 %3}, length=6, num_carry=1, num_consts=2, reverse=false} %0 %1 %2
    %6:f64[6,5,4] = matmul %4 %0 %1
    %7:f64[6,5,4] = sigmoid %6
    %8:f64[6,5,4] = sigmoid %5
    %9:f64[6,5,4] = mul %7 %8
    out %3 %5 %9)");
  const Graph after = dce(cse(reuse_loop_values(before)));
  check_same_values(before, after);
  check_same_derivatives(before, after);
  const std::string text = print(after);
  CHECK(text.find("matmul") == text.rfind("matmul"));  // the loop's alone
  CHECK(text.find("mul %6 %6") != std::string::npos);  // one sigmoid behind it
}

TEST_CASE("products by other factors, or of stacks by stacks, stay") {
  for (const char* behind :
       {"%5:f64[6,5,4] = matmul %4 %1",  // not what the loop multiplies by
        "%5:f64[6,5,6,5] = dot_general {lhs_batch=[], lhs_contract=[2], rhs_batch=[],"
        " rhs_contract=[2]} %4 %4"}) {
    CAPTURE(behind);
    const Graph before = parse(fmt::format(R"(in %0:f64[4,4] %1:f64[4,4] %2:f64[5,4]
      %3:f64[5,4], %4:f64[6,5,4] = scan {{body={{
          in %0:f64[4,4] %1:f64[5,4]
          %2:f64[5,4] = matmul %1 %0
          %3:f64[5,5] = dot_general {{lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                      rhs_contract=[1]}} %1 %1
          %4:f64[5,4] = matmul %3 %2
          out %4 %1}}, length=6, num_carry=1, num_consts=1, reverse=false}} %0 %2
      {}
      out %3 %5)",
                                           behind));
    CHECK(kept(before) == print(before));
  }
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

namespace {

// s = 1 where h is positive, h' = 0.5 h + [x, s] W; hands out h. Behind: [x, s] of all
// steps, or with `other` in its place.
Graph joined_input(const std::string& other) {
  return parse(fmt::format(R"(in %0:f64[7,4] %1:f64[5,4] %2:f64[6,5,3] %3:f64[6,5,4]
    %4:f64[5,4], %5:f64[6,5,4] = scan {{body={{
        in %0:f64[7,4] %1:f64[5,4] %2:f64[5,3]
        %3:f64[5,4] = sign %1
        %4:f64[5,7] = concatenate {{axis=1}} %2 %3
        %5:f64[5,4] = matmul %4 %0
        %6:f64[5,4] = add %1 %5
        out %6 %1}}, length=6, num_carry=1, num_consts=1, reverse=false}} %0 %1 %2
    %6:f64[6,5,4] = sign %5
    {}
    %8:f64[7,4] = dot_general {{lhs_batch=[], lhs_contract=[0,1], rhs_batch=[],
                                rhs_contract=[0,1]}} %7 %3
    out %4 %5 %8)",
                           other));
}

}  // namespace

TEST_CASE("what a product behind the loop reads is written by it, joined as it was") {
  const Graph before = joined_input("%7:f64[6,5,7] = concatenate {axis=2} %2 %6");
  const Graph after = dce(reuse_loop_values(before));
  check_same_values(before, after);
  CHECK(print(after) ==
        print(parse(R"(in %0:f64[7,4] %1:f64[5,4] %2:f64[6,5,3] %3:f64[6,5,4]
    %4:f64[5,4], %5:f64[6,5,4], %6:f64[6,5,7] = scan {body={
        in %0:f64[7,4] %1:f64[5,4] %2:f64[5,3]
        %3:f64[5,4] = sign %1
        %4:f64[5,7] = concatenate {axis=1} %2 %3
        %5:f64[5,4] = matmul %4 %0
        %6:f64[5,4] = add %1 %5
        out %6 %1 %4}, length=6, num_carry=1, num_consts=1, reverse=false} %0 %1 %2
    %7:f64[7,4] = dot_general {lhs_batch=[], lhs_contract=[0,1], rhs_batch=[],
                               rhs_contract=[0,1]} %6 %3
    out %4 %5 %7)")));
}

TEST_CASE(
    "arrays that are joined otherwise behind the loop take only their parts of it") {
  for (const char* other : {"%7:f64[6,5,7] = concatenate {axis=2} %6 %2",
                            "%9:f64[6,5,3] = neg %2\n"
                            "%7:f64[6,5,7] = concatenate {axis=2} %9 %6"}) {
    const Graph before = joined_input(other);
    const Graph after = dce(reuse_loop_values(before));
    check_same_values(before, after);
    const auto& nodes = after.nodes();
    const auto count = [&](std::string_view op) {
      return std::count_if(nodes.begin(), nodes.end(),
                           [&](const Node& n) { return n.op->name == op; });
    };
    CHECK(count("sign") == 0);
    CHECK(count("concatenate") == 1);
  }
}

}  // namespace reuse_loop_values_test
