// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/split_scan.h"

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/passes/dce.h"
#include "braintrace/passes/hoist_accumulators.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/testing/pass_check.h"

namespace split_scan_test {

using namespace braintrace;
using braintrace::testing::check_same_derivatives;
using braintrace::testing::check_same_values;

namespace {

std::string text(std::string_view t) { return print(parse(t)); }

std::string judged(const Graph& before, const Graph& after) {
  check_same_values(before, after);
  check_same_derivatives(before, after);
  return print(after);
}

std::string split(std::string_view t, const SplitScanOptions& options = {}) {
  const Graph g = parse(t);
  return judged(g, dce(split_scan(g, options)));
}

// h' = tanh(x W + h V); y = h' U; W, V, U constants of the loop
const char* recurrent =
    R"(in %0:f64[3,4] %1:f64[4,4] %2:f64[4,2] %3:f64[5,4] %4:f64[6,5,3]
    %5:f64[5,4], %6:f64[6,5,2] = scan {body={
        in %0:f64[3,4] %1:f64[4,4] %2:f64[4,2] %3:f64[5,4] %4:f64[5,3]
        %5:f64[5,4] = matmul %4 %0
        %6:f64[5,4] = matmul %3 %1
        %7:f64[5,4] = add %5 %6
        %8:f64[5,4] = tanh %7
        %9:f64[5,2] = matmul %8 %2
        out %8 %9}, length=6, num_carry=1, num_consts=3, reverse=false} %0 %1 %2 %3 %4
    out %5 %6)";

}  // namespace

TEST_CASE("products of inputs go before the loop and read-outs behind it") {
  CHECK(split(recurrent) == text(R"(
    in %0:f64[3,4] %1:f64[4,4] %2:f64[4,2] %3:f64[5,4] %4:f64[6,5,3]
    %5:f64[6,5,4] = matmul %4 %0
    %6:f64[5,4], %7:f64[6,5,4] = scan {body={
        in %0:f64[4,4] %1:f64[5,4] %2:f64[5,4]
        %3:f64[5,4] = matmul %1 %0
        %4:f64[5,4] = add %2 %3
        %5:f64[5,4] = tanh %4
        out %5 %5}, length=6, num_carry=1, num_consts=1, reverse=false} %1 %3 %5
    %8:f64[6,5,2] = matmul %7 %2
    out %6 %8)"));
}

TEST_CASE("nothing moves when it would take too much memory") {
  CHECK(split(recurrent, {.max_bytes = 1000}) == text(recurrent));
}

TEST_CASE("what is the same at every step is computed once") {
  CHECK(split(R"(in %0:f64[2] %1:f64[2]
      %2:f64[2] = scan {body={in %0:f64[2] %1:f64[2] %2:f64[2] = exp %0
          %3:f64[] = constant {value=f64[](2)} %4:f64[2] = broadcast {shape=[2]} %3
          %5:f64[2] = mul %2 %1 %6:f64[2] = sub %5 %4 out %6},
          length=3, num_carry=1, num_consts=1, reverse=false} %0 %1
      out %2)") == text(R"(in %0:f64[2] %1:f64[2]
      %2:f64[2] = exp %0
      %3:f64[2] = scan {body={in %0:f64[2] %1:f64[2]
          %2:f64[] = constant {value=f64[](2)} %3:f64[2] = broadcast {shape=[2]} %2
          %4:f64[2] = mul %0 %1 %5:f64[2] = sub %4 %3 out %5},
          length=3, num_carry=1, num_consts=1, reverse=false} %2 %1
      out %3)"));
}

TEST_CASE("dead and unchanged carries and unread results leave the loop") {
  CHECK(split(R"(in %0:f64[2] %1:f64[2] %2:f64[2] %3:f64[4,2]
      %4:f64[2], %5:f64[2], %6:f64[2], %7:f64[4,2], %8:f64[4,2], %9:f64[4,2] = scan {body={
          in %0:f64[2] %1:f64[2] %2:f64[2] %3:f64[2]
          %4:f64[2] = mul %0 %2
          %5:f64[2] = add %4 %3
          %6:f64[2] = sin %1
          out %5 %6 %2 %6 %3 %2}, length=4, num_carry=3, num_consts=0, reverse=false}
          %0 %1 %2 %3
      out %4 %6 %8 %9)") == text(R"(in %0:f64[2] %1:f64[2] %2:f64[2] %3:f64[4,2]
      %4:f64[2] = scan {body={in %0:f64[2] %1:f64[2] %2:f64[2]
          %3:f64[2] = mul %1 %0
          %4:f64[2] = add %3 %2
          out %4}, length=4, num_carry=1, num_consts=1, reverse=false} %2 %0 %3
      %5:f64[4,2] = broadcast {shape=[4,2]} %2
      out %4 %2 %3 %5)"));
}

TEST_CASE("a cheap function of stacked values is not stacked") {
  CHECK(split(R"(in %0:f64[2] %1:f64[4,2]
      %2:f64[2], %3:f64[4,2], %4:f64[4,2] = scan {body={in %0:f64[2] %1:f64[2]
          %2:f64[2] = mul %0 %1
          %3:f64[2] = tanh %2
          out %3 %2 %0}, length=4, num_carry=1, num_consts=0, reverse=true} %0 %1
      out %2 %3 %4)") == text(R"(in %0:f64[2] %1:f64[4,2]
      %2:f64[2], %3:f64[4,2] = scan {body={in %0:f64[2] %1:f64[2]
          %2:f64[2] = mul %0 %1
          %3:f64[2] = tanh %2
          out %3 %0}, length=4, num_carry=1, num_consts=0, reverse=true} %0 %1
      %4:f64[4,2] = mul %3 %1
      out %2 %4 %3)"));
}

TEST_CASE("a small result of large values without products stays in the loop") {
  const char* g = R"(in %0:f64[9] %1:f64[4,9]
      %2:f64[9], %3:f64[4] = scan {body={in %0:f64[9] %1:f64[9]
          %2:f64[9] = mul %0 %1
          %3:f64[9] = sin %2
          %4:f64[] = reduce_sum {axes=[0]} %3
          out %2 %4}, length=4, num_carry=1, num_consts=0, reverse=false} %0 %1
      out %2 %3)";
  CHECK(split(g) == text(g));
}

TEST_CASE("a loop that only maps disappears") {
  CHECK(split(R"(in %0:f64[2] %1:f64[4,2]
      %2:f64[4,2] = scan {body={in %0:f64[2] %1:f64[2] %2:f64[2] = mul %0 %1 out %2},
          length=4, num_carry=0, num_consts=1, reverse=false} %0 %1
      out %2)") == text(R"(in %0:f64[2] %1:f64[4,2]
      %2:f64[4,2] = broadcast {shape=[4,2]} %0
      %3:f64[4,2] = mul %2 %1
      out %3)"));
}

TEST_CASE("loops without steps are left alone") {
  const char* g = R"(in %0:f64[2] %1:f64[0,2]
      %2:f64[2], %3:f64[0,2] = scan {body={in %0:f64[2] %1:f64[2] %2:f64[2] = mul %0 %1
          out %0 %2}, length=0, num_carry=1, num_consts=0, reverse=false} %0 %1
      out %2 %3)";
  CHECK(split(g) == text(g));
}

TEST_CASE("what a loop adds up is summed behind it") {
  const Graph g = parse(R"(in %0:f64[3] %1:f64[2] %2:f64[3] %3:f64[7,2] %4:f64[7,3]
      %5:f64[3], %6:f64[2], %7:f64[3] = scan {body={
          in %0:f64[3] %1:f64[2] %2:f64[3] %3:f64[2] %4:f64[3]
          %5:f64[2] = mul %1 %3
          %6:f64[3] = add %0 %4
          %7:f64[3] = sub %2 %4
          out %6 %5 %7}, length=7, num_carry=3, num_consts=0, reverse=false}
          %0 %1 %2 %3 %4
      out %5 %6 %7)");
  CHECK(judged(g, hoist_accumulators(g)) == text(R"(
      in %0:f64[3] %1:f64[2] %2:f64[3] %3:f64[7,2] %4:f64[7,3]
      %5:f64[2], %6:f64[7,3], %7:f64[7,3] = scan {body={in %0:f64[2] %1:f64[2] %2:f64[3]
          %3:f64[2] = mul %0 %1
          out %3 %2 %2}, length=7, num_carry=1, num_consts=0, reverse=false} %1 %3 %4
      %8:f64[3] = reduce_sum {axes=[0]} %6
      %9:f64[3] = add %0 %8
      %10:f64[3] = reduce_sum {axes=[0]} %7
      %11:f64[3] = sub %2 %10
      out %9 %5 %11)"));
}

TEST_CASE("a sum the body reads, or whose parts take much memory, stays a carry") {
  const Graph read = parse(R"(in %0:f64[3] %1:f64[7,3]
      %2:f64[3], %3:f64[7,3] = scan {body={in %0:f64[3] %1:f64[3] %2:f64[3] = add %0 %1
          out %2 %2}, length=7, num_carry=1, num_consts=0, reverse=false} %0 %1
      out %2 %3)");
  CHECK(print(hoist_accumulators(read)) == print(read));
  const Graph large = parse(R"(in %0:f64[3] %1:f64[7,3]
      %2:f64[3] = scan {body={in %0:f64[3] %1:f64[3] %2:f64[3] = sin %1
          %3:f64[3] = add %0 %2
          out %3}, length=7, num_carry=1, num_consts=0, reverse=false} %0 %1
      out %2)");
  CHECK(print(hoist_accumulators(large, {.max_bytes = 100})) == print(large));
  CHECK(print(hoist_accumulators(large, {.max_bytes = 168})) != print(large));
}

}  // namespace split_scan_test
