// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/fuse_gates.h"

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/passes/dce.h"
#include "braintrace/passes/stretch_constants.h"
#include "braintrace/testing/pass_check.h"

namespace fuse_gates_test {

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

std::string fused(std::string_view t, const FuseGatesOptions& options = {}) {
  const Graph g = parse(t);
  return judged(g, dce(fuse_gates(g, options)));
}

// Two gates of h with biases.
const char* two_gates = R"(
    in %0:f64[3,3] %1:f64[3] %2:f64[3,3] %3:f64[3] %4:f64[5,3]
    %5:f64[5,3] = scan {body={
        in %0:f64[3,3] %1:f64[3] %2:f64[3,3] %3:f64[3] %4:f64[5,3]
        %5:f64[5,3] = matmul %4 %0 %1
        %6:f64[5,3] = sigmoid %5
        %7:f64[5,3] = matmul %4 %2 %3
        %8:f64[5,3] = mul %6 %7
        out %8}, length=6, num_carry=1, num_consts=4, reverse=false} %0 %1 %2 %3 %4
    out %5)";

}  // namespace

TEST_CASE("products of one value with several weights of a loop become one") {
  CHECK(fused(two_gates) == text(R"(
    in %0:f64[3,3] %1:f64[3] %2:f64[3,3] %3:f64[3] %4:f64[5,3]
    %5:f64[3,6] = concatenate {axis=1} %0 %2
    %6:f64[6] = concatenate {axis=0} %1 %3
    %7:f64[5,3] = scan {body={in %0:f64[3,6] %1:f64[6] %2:f64[5,3]
        %3:f64[5,6] = matmul %2 %0 %1
        %4:f64[5,3] = slice {size=[5,3], start=[0,0], step=[1,1]} %3
        %5:f64[5,3] = slice {size=[5,3], start=[0,3], step=[1,1]} %3
        %6:f64[5,3] = sigmoid %4
        %7:f64[5,3] = mul %6 %5
        out %7}, length=6, num_carry=1, num_consts=2, reverse=false} %5 %6 %4
    out %7)"));
}

TEST_CASE("short loops are not worth packing weights for") {
  CHECK(fused(two_gates, {.min_length = 7}) == text(two_gates));
}

TEST_CASE("weights that change in the loop are not packed") {
  const char* g = R"(in %0:f64[3,3] %1:f64[5,3]
      %2:f64[3,3], %3:f64[5,3] = scan {body={in %0:f64[3,3] %1:f64[5,3]
          %2:f64[3,3] = tanh %0
          %3:f64[5,3] = matmul %1 %0
          %4:f64[5,3] = matmul %1 %2
          %5:f64[5,3] = mul %3 %4
          out %2 %5}, length=6, num_carry=2, num_consts=0, reverse=false} %0 %1
      out %2 %3)";
  CHECK(fused(g) == text(g));
}

TEST_CASE("added products become one product of joined operands") {
  CHECK(fused(R"(in %0:f64[3,2] %1:f64[3,3] %2:f64[5,3] %3:f64[6,5,2]
      %4:f64[5,3] = scan {body={in %0:f64[3,2] %1:f64[3,3] %2:f64[5,3] %3:f64[5,2]
          %4:f64[5,3] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                     rhs_contract=[1]} %3 %0
          %5:f64[5,3] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                     rhs_contract=[1]} %2 %1
          %6:f64[5,3] = add %4 %5
          out %6}, length=6, num_carry=1, num_consts=2, reverse=false} %0 %1 %2 %3
      out %4)") == text(R"(in %0:f64[3,2] %1:f64[3,3] %2:f64[5,3] %3:f64[6,5,2]
      %4:f64[3,5] = concatenate {axis=1} %0 %1
      %5:f64[5,3] = scan {body={in %0:f64[3,5] %1:f64[5,3] %2:f64[5,2]
          %3:f64[5,5] = concatenate {axis=1} %2 %1
          %4:f64[5,3] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                     rhs_contract=[1]} %3 %0
          out %4}, length=6, num_carry=1, num_consts=1, reverse=false} %4 %2 %3
      out %5)"));
}

TEST_CASE("only the part of a product that is read is computed") {
  CHECK(fused(R"(in %0:f64[3,9] %1:f64[5,3]
      %2:f64[5,3] = scan {body={in %0:f64[3,9] %1:f64[5,3]
          %2:f64[5,9] = matmul %1 %0
          %3:f64[5,3] = slice {size=[5,3], start=[0,2], step=[1,1]} %2
          %4:f64[5,3] = slice {size=[5,3], start=[0,4], step=[1,1]} %2
          %5:f64[5,3] = mul %3 %4
          out %5}, length=6, num_carry=1, num_consts=1, reverse=false} %0 %1
      out %2)") == text(R"(in %0:f64[3,9] %1:f64[5,3]
      %2:f64[3,5] = slice {size=[3,5], start=[0,2], step=[1,1]} %0
      %3:f64[5,3] = scan {body={in %0:f64[3,5] %1:f64[5,3]
          %2:f64[5,5] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                     rhs_contract=[0]} %1 %0
          %3:f64[5,3] = slice {size=[5,3], start=[0,0], step=[1,1]} %2
          %4:f64[5,3] = slice {size=[5,3], start=[0,2], step=[1,1]} %2
          %5:f64[5,3] = mul %3 %4
          out %5}, length=6, num_carry=1, num_consts=1, reverse=false} %2 %1
      out %3)"));
}

TEST_CASE("constants of equal elements become stretched scalars") {
  const Graph g = parse(R"(in %0:f64[2,2]
      %1:f64[2,2] = constant {value=f64[2,2](splat -0)}
      %2:f64[2] = constant {value=f64[2](0, -0)}
      %3:f64[1] = constant {value=f64[1](3)}
      out %1 %2 %3)");
  CHECK(judged(g, stretch_constants(g)) == text(R"(in %0:f64[2,2]
      %1:f64[] = constant {value=f64[](-0)}
      %2:f64[2,2] = broadcast {shape=[2,2]} %1
      %3:f64[2] = constant {value=f64[2](0, -0)}
      %4:f64[1] = constant {value=f64[1](3)}
      out %2 %3 %4)"));
}

}  // namespace fuse_gates_test
