// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/contract_sums.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace contract_sums_test {

using namespace braintrace;
using braintrace::testing::check_same_derivatives;
using braintrace::testing::check_same_values;

namespace {

std::string text(std::string_view t) { return print(parse(t)); }

// The rewritten text, after checking that values and derivatives stayed.
std::string contracted(std::string_view t) {
  const Graph g = parse(t);
  const Graph h = dce(contract_sums(g));
  check_same_values(g, h);
  check_same_derivatives(g, h);
  return print(h);
}

}  // namespace

TEST_CASE("a sum over a batch axis of a product becomes one product") {
  CHECK(contracted(R"(in %0:f64[5,3,4] %1:f64[5,3,2]
      %2:f64[5,4,2] = dot_general {lhs_batch=[0], lhs_contract=[1], rhs_batch=[0],
                                   rhs_contract=[1]} %0 %1
      %3:f64[4,2] = reduce_sum {axes=[0]} %2
      out %3)") == text(R"(in %0:f64[5,3,4] %1:f64[5,3,2]
      %2:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0,1], rhs_batch=[],
                                 rhs_contract=[0,1]} %0 %1
      out %2)"));
}

TEST_CASE("a permuted product that is summed comes out in order") {
  CHECK(contracted(R"(in %0:f64[5,3,4] %1:f64[5,3,2]
      %2:f64[5,4,2] = dot_general {lhs_batch=[0], lhs_contract=[1], rhs_batch=[0],
                                   rhs_contract=[1]} %0 %1
      %3:f64[5,2,4] = transpose {permutation=[0,2,1]} %2
      %4:f64[2,4] = reduce_sum {axes=[0]} %3
      out %4)") == text(R"(in %0:f64[5,3,4] %1:f64[5,3,2]
      %2:f64[2,4] = dot_general {lhs_batch=[], lhs_contract=[0,1], rhs_batch=[],
                                 rhs_contract=[0,1]} %1 %0
      out %2)"));
}

TEST_CASE("a sum over some of the batch axes keeps the others") {
  CHECK(contracted(R"(in %0:f64[5,3,4] %1:f64[5,3,2]
      %2:f64[5,3,4,2] = dot_general {lhs_batch=[0,1], lhs_contract=[], rhs_batch=[0,1],
                                     rhs_contract=[]} %0 %1
      %3:f64[3,4,2] = reduce_sum {axes=[0]} %2
      out %3)") == text(R"(in %0:f64[5,3,4] %1:f64[5,3,2]
      %2:f64[3,4,2] = dot_general {lhs_batch=[1], lhs_contract=[0], rhs_batch=[1],
                                   rhs_contract=[0]} %0 %1
      out %2)"));
}

TEST_CASE("a sum over a free axis sums the operand first") {
  CHECK(contracted(R"(in %0:f64[3,4] %1:f64[4,2]
      %2:f64[3,2] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                 rhs_contract=[0]} %0 %1
      %3:f64[2] = reduce_sum {axes=[0]} %2
      out %3)") == text(R"(in %0:f64[3,4] %1:f64[4,2]
      %2:f64[4] = reduce_sum {axes=[0]} %0
      %3:f64[2] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                               rhs_contract=[0]} %2 %1
      out %3)"));
}

TEST_CASE("a product somebody else reads is left alone") {
  const char* g = R"(in %0:f64[5,3,4] %1:f64[5,3,2]
      %2:f64[5,4,2] = dot_general {lhs_batch=[0], lhs_contract=[1], rhs_batch=[0],
                                   rhs_contract=[1]} %0 %1
      %3:f64[4,2] = reduce_sum {axes=[0]} %2
      out %3 %2)";
  CHECK(contracted(g) == text(g));
}

TEST_CASE("summed outer products become a matrix product") {
  CHECK(contracted(R"(in %0:f64[5,4] %1:f64[5,2]
      %2:f64[5,4,1] = reshape {shape=[5,4,1]} %0
      %3:f64[5,1,2] = reshape {shape=[5,1,2]} %1
      %4:f64[5,4,2] = broadcast {shape=[5,4,2]} %2
      %5:f64[5,4,2] = broadcast {shape=[5,4,2]} %3
      %6:f64[5,4,2] = mul %4 %5
      %7:f64[4,2] = reduce_sum {axes=[0]} %6
      out %7)") == text(R"(in %0:f64[5,4] %1:f64[5,2]
      %2:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %0 %1
      out %2)"));
}

TEST_CASE("a third factor joins the side that has its axes") {
  CHECK(contracted(R"(in %0:f64[5,4] %1:f64[5,2] %2:f64[5,2]
      %3:f64[5,4,1] = reshape {shape=[5,4,1]} %0
      %4:f64[5,1,2] = reshape {shape=[5,1,2]} %1
      %5:f64[5,1,2] = reshape {shape=[5,1,2]} %2
      %6:f64[5,4,2] = broadcast {shape=[5,4,2]} %3
      %7:f64[5,4,2] = broadcast {shape=[5,4,2]} %4
      %8:f64[5,4,2] = broadcast {shape=[5,4,2]} %5
      %9:f64[5,4,2] = mul %6 %7
      %10:f64[5,4,2] = mul %8 %9
      %11:f64[4,2] = reduce_sum {axes=[0]} %10
      out %11)") == text(R"(in %0:f64[5,4] %1:f64[5,2] %2:f64[5,2]
      %3:f64[5,2] = mul %1 %2
      %4:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %0 %3
      out %4)"));
}

// Over t, of u[t,j] v[t,l] w[l,j] x[t,k], read as [k,j,l].
TEST_CASE("a factor of a sum that would come out turned is made turned instead") {
  CHECK(contracted(R"(in %0:f64[5,3] %1:f64[5,4] %2:f64[4,3] %3:f64[5,6]
      %4:f64[5,1,3] = reshape {shape=[5,1,3]} %0
      %5:f64[5,4,1] = reshape {shape=[5,4,1]} %1
      %6:f64[5,4,3] = broadcast {shape=[5,4,3]} %4
      %7:f64[5,4,3] = broadcast {shape=[5,4,3]} %5
      %8:f64[5,4,3] = broadcast {shape=[5,4,3]} %2
      %9:f64[5,4,3] = mul %6 %7
      %10:f64[5,4,3] = mul %9 %8
      %11:f64[5,4,3,6] = dot_general {lhs_batch=[0], lhs_contract=[], rhs_batch=[0],
                                      rhs_contract=[]} %10 %3
      %12:f64[5,6,3,4] = transpose {permutation=[0,3,2,1]} %11
      %13:f64[6,3,4] = reduce_sum {axes=[0]} %12
      out %13)") == text(R"(in %0:f64[5,3] %1:f64[5,4] %2:f64[4,3] %3:f64[5,6]
      %4:f64[5,3,1] = reshape {shape=[5,3,1]} %0
      %5:f64[5,1,4] = reshape {shape=[5,1,4]} %1
      %6:f64[5,3,4] = broadcast {shape=[5,3,4]} %4
      %7:f64[5,3,4] = broadcast {shape=[5,3,4]} %5
      %8:f64[5,3,4] = mul %6 %7
      %9:f64[6,3,4] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                   rhs_contract=[0]} %3 %8
      %10:f64[3,4] = transpose {permutation=[1,0]} %2
      %11:f64[1,3,4] = reshape {shape=[1,3,4]} %10
      %12:f64[6,3,4] = broadcast {shape=[6,3,4]} %11
      %13:f64[6,3,4] = mul %9 %12
      out %13)"));
}

TEST_CASE("a product in the middle of whose axes another belongs keeps its rows whole") {
  // (j, i, k) of x (t, i), a (t, j), b (t, k), w (j, k): w waits behind the sum.
  CHECK(contracted(R"(in %0:f64[5,3] %1:f64[5,4] %2:f64[3,4] %3:f64[5,6]
      %4:f64[5,3,1] = reshape {shape=[5,3,1]} %0
      %5:f64[5,1,4] = reshape {shape=[5,1,4]} %1
      %6:f64[5,3,4] = broadcast {shape=[5,3,4]} %4
      %7:f64[5,3,4] = broadcast {shape=[5,3,4]} %5
      %8:f64[5,3,4] = broadcast {shape=[5,3,4]} %2
      %9:f64[5,3,4] = mul %6 %7
      %10:f64[5,3,4] = mul %9 %8
      %11:f64[5,3,4,6] = dot_general {lhs_batch=[0], lhs_contract=[], rhs_batch=[0],
                                      rhs_contract=[]} %10 %3
      %12:f64[5,3,6,4] = transpose {permutation=[0,1,3,2]} %11
      %13:f64[3,6,4] = reduce_sum {axes=[0]} %12
      out %13)") == text(R"(in %0:f64[5,3] %1:f64[5,4] %2:f64[3,4] %3:f64[5,6]
      %4:f64[5,3,1] = reshape {shape=[5,3,1]} %0
      %5:f64[5,1,4] = reshape {shape=[5,1,4]} %1
      %6:f64[5,3,4] = broadcast {shape=[5,3,4]} %4
      %7:f64[5,3,4] = broadcast {shape=[5,3,4]} %5
      %8:f64[5,3,4] = mul %6 %7
      %9:f64[6,3,4] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                   rhs_contract=[0]} %3 %8
      %10:f64[3,6,4] = transpose {permutation=[1,0,2]} %9
      %11:f64[3,1,4] = reshape {shape=[3,1,4]} %2
      %12:f64[3,6,4] = broadcast {shape=[3,6,4]} %11
      %13:f64[3,6,4] = mul %10 %12
      out %13)"));
}

// sum over t of x[t,i] a[t,j] b[t,k] w[j,k]: what a full sensitivity of a window is.
TEST_CASE(
    "a sum whose first axis one side lacks is a product for each of its positions") {
  CHECK(contracted(R"(in %0:f64[32,24] %1:f64[32,24] %2:f64[24,24] %3:f64[32,30]
      %4:f64[32,1,24] = reshape {shape=[32,1,24]} %0
      %5:f64[32,24,1] = reshape {shape=[32,24,1]} %1
      %6:f64[32,24,24] = broadcast {shape=[32,24,24]} %4
      %7:f64[32,24,24] = broadcast {shape=[32,24,24]} %5
      %8:f64[32,24,24] = broadcast {shape=[32,24,24]} %2
      %9:f64[32,24,24] = mul %6 %7
      %10:f64[32,24,24] = mul %9 %8
      %11:f64[32,24,24,30] = dot_general {lhs_batch=[0], lhs_contract=[], rhs_batch=[0],
                                          rhs_contract=[]} %10 %3
      %12:f64[32,24,30,24] = transpose {permutation=[0,1,3,2]} %11
      %13:f64[24,30,24] = reduce_sum {axes=[0]} %12
      out %13)") == text(R"(in %0:f64[32,24] %1:f64[32,24] %2:f64[24,24] %3:f64[32,30]
      %4:f64[32,1,24] = reshape {shape=[32,1,24]} %0
      %5:f64[32,24,1] = reshape {shape=[32,24,1]} %1
      %6:f64[32,24,24] = broadcast {shape=[32,24,24]} %4
      %7:f64[32,24,24] = broadcast {shape=[32,24,24]} %5
      %8:f64[32,24,24] = mul %6 %7
      %9:f64[1,24,24] = reshape {shape=[1,24,24]} %2
      %10:f64[32,24,24] = broadcast {shape=[32,24,24]} %9
      %11:f64[32,24,24] = mul %8 %10
      %12:f64[24,32,30] = broadcast {shape=[24,32,30]} %3
      %13:f64[24,30,24] = dot_general {lhs_batch=[0], lhs_contract=[1], rhs_batch=[1],
                                       rhs_contract=[0]} %12 %11
      out %13)"));
}

TEST_CASE("a sum of what is multiplied out is a product of its two sides") {
  CHECK(contracted(R"(in %0:f64[5,3] %1:f64[5,4] %2:f64[4,3]
      %3:f64[5,1,3] = reshape {shape=[5,1,3]} %0
      %4:f64[5,4,1] = reshape {shape=[5,4,1]} %1
      %5:f64[5,4,3] = broadcast {shape=[5,4,3]} %3
      %6:f64[5,4,3] = broadcast {shape=[5,4,3]} %4
      %7:f64[5,4,3] = broadcast {shape=[5,4,3]} %2
      %8:f64[5,4,3] = mul %5 %6
      %9:f64[5,4,3] = mul %8 %7
      %10:f64[4,3] = reduce_sum {axes=[0]} %9
      out %9 %10)") == text(R"(in %0:f64[5,3] %1:f64[5,4] %2:f64[4,3]
      %3:f64[5,1,3] = reshape {shape=[5,1,3]} %0
      %4:f64[5,4,1] = reshape {shape=[5,4,1]} %1
      %5:f64[5,4,3] = broadcast {shape=[5,4,3]} %3
      %6:f64[5,4,3] = broadcast {shape=[5,4,3]} %4
      %7:f64[5,4,3] = broadcast {shape=[5,4,3]} %2
      %8:f64[5,4,3] = mul %5 %6
      %9:f64[5,4,3] = mul %8 %7
      %10:f64[4,3] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                  rhs_contract=[0]} %1 %0
      %11:f64[4,3] = mul %10 %2
      out %9 %11)"));
}

TEST_CASE("an operand that is no outer product stays as it lies") {
  const char* g = R"(in %0:f64[5,4,3] %1:f64[5,6]
      %2:f64[4,3,6] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                   rhs_contract=[0]} %0 %1
      %3:f64[6,3,4] = transpose {permutation=[2,1,0]} %2
      out %3)";
  CHECK(contracted(g) == text(g));
}

TEST_CASE("a sum of products no larger than their factors stays element by element") {
  const char* g = R"(in %0:f64[5,4] %1:f64[5,4]
      %2:f64[5,4] = mul %0 %1
      %3:f64[4] = reduce_sum {axes=[0]} %2
      out %3)";
  CHECK(contracted(g) == text(g));
}

TEST_CASE("what is added to a product under a sum is summed on its own") {
  CHECK(contracted(R"(in %0:f64[5,3,4] %1:f64[5,3,2] %2:f64[5,4,2]
      %3:f64[5,4,2] = dot_general {lhs_batch=[0], lhs_contract=[1], rhs_batch=[0],
                                   rhs_contract=[1]} %0 %1
      %4:f64[5,4,2] = add %2 %3
      %5:f64[4,2] = reduce_sum {axes=[0]} %4
      out %5)") == text(R"(in %0:f64[5,3,4] %1:f64[5,3,2] %2:f64[5,4,2]
      %3:f64[4,2] = reduce_sum {axes=[0]} %2
      %4:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0,1], rhs_batch=[],
                                 rhs_contract=[0,1]} %0 %1
      %5:f64[4,2] = add %3 %4
      out %5)"));
}

TEST_CASE("products that share an operand are added before they are multiplied") {
  CHECK(contracted(R"(in %0:f64[5,4] %1:f64[5,2] %2:f64[5,2] %3:f64[5,2]
      %4:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %0 %1
      %5:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %0 %2
      %6:f64[2,4] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %3 %0
      %7:f64[4,2] = add %4 %5
      %8:f64[4,2] = transpose {permutation=[1,0]} %6
      %9:f64[4,2] = sub %7 %8
      out %9)") == text(R"(in %0:f64[5,4] %1:f64[5,2] %2:f64[5,2] %3:f64[5,2]
      %4:f64[5,2] = add %1 %2
      %5:f64[5,2] = sub %4 %3
      %6:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %0 %5
      out %6)"));
}

TEST_CASE("products with a common left or right side need the same axes contracted") {
  const char* g = R"(in %0:f64[4,4] %1:f64[4,4] %2:f64[4,4]
      %3:f64[4,4] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[],
                                 rhs_contract=[0]} %0 %1
      %4:f64[4,4] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                 rhs_contract=[0]} %0 %2
      %5:f64[4,4] = add %3 %4
      out %5)";
  CHECK(contracted(g) == text(g));
}

TEST_CASE("permuted operands are read in place") {
  CHECK(contracted(R"(in %0:f64[3,4] %1:f64[2,4]
      %2:f64[4,2] = transpose {permutation=[1,0]} %1
      %3:f64[3,2] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                 rhs_contract=[0]} %0 %2
      out %3)") == text(R"(in %0:f64[3,4] %1:f64[2,4]
      %2:f64[3,2] = dot_general {lhs_batch=[], lhs_contract=[1], rhs_batch=[],
                                 rhs_contract=[1]} %0 %1
      out %2)"));
}

TEST_CASE("an operand repeated along a contracted axis is read once") {
  CHECK(contracted(R"(in %0:f64[5,3,4] %1:f64[4,2]
      %2:f64[5,4,2] = broadcast {shape=[5,4,2]} %1
      %3:f64[5,3,2] = dot_general {lhs_batch=[0], lhs_contract=[2], rhs_batch=[0],
                                   rhs_contract=[1]} %0 %2
      out %3)") == text(R"(in %0:f64[5,3,4] %1:f64[4,2]
      %2:f64[5,3,2] = dot_general {lhs_batch=[], lhs_contract=[2], rhs_batch=[],
                                   rhs_contract=[0]} %0 %1
      out %2)"));
}

TEST_CASE("a sum of a sum is one sum, and a sum of copies is a multiple") {
  CHECK(contracted(R"(in %0:f64[5,3,4]
      %1:f64[5,4] = reduce_sum {axes=[1]} %0
      %2:f64[4] = reduce_sum {axes=[0]} %1
      out %2)") == text(R"(in %0:f64[5,3,4]
      %1:f64[4] = reduce_sum {axes=[0,1]} %0
      out %1)"));
  CHECK(contracted(R"(in %0:f64[4] %1:f64[2]
      %2:f64[4,1] = reshape {shape=[4,1]} %0
      %3:f64[5,4,2] = broadcast {shape=[5,4,2]} %2
      %4:f64[5,4,2] = broadcast {shape=[5,4,2]} %1
      %5:f64[5,4,2] = mul %3 %4
      %6:f64[2] = reduce_sum {axes=[0,1]} %5
      out %6)") == text(R"(in %0:f64[4] %1:f64[2]
      %2:f64[] = reduce_sum {axes=[0]} %0
      %3:f64[1] = reshape {shape=[1]} %2
      %4:f64[2] = broadcast {shape=[2]} %3
      %5:f64[2] = mul %4 %1
      %6:f64[] = constant {value=f64[](5)}
      %7:f64[2] = broadcast {shape=[2]} %6
      %8:f64[2] = mul %5 %7
      out %8)"));
}

TEST_CASE("sums inside loops are contracted") {
  CHECK(contracted(R"(in %0:f64[4,2] %1:f64[7,5,3,4] %2:f64[7,5,3,2]
      %3:f64[4,2] = scan {body={in %0:f64[4,2] %1:f64[5,3,4] %2:f64[5,3,2]
          %3:f64[5,4,2] = dot_general {lhs_batch=[0], lhs_contract=[1], rhs_batch=[0],
                                       rhs_contract=[1]} %1 %2
          %4:f64[4,2] = reduce_sum {axes=[0]} %3
          %5:f64[4,2] = add %0 %4
          out %5}, length=7, num_carry=1, num_consts=0, reverse=false} %0 %1 %2
      out %3)") == text(R"(in %0:f64[4,2] %1:f64[7,5,3,4] %2:f64[7,5,3,2]
      %3:f64[4,2] = scan {body={in %0:f64[4,2] %1:f64[5,3,4] %2:f64[5,3,2]
          %3:f64[4,2] = dot_general {lhs_batch=[], lhs_contract=[0,1], rhs_batch=[],
                                     rhs_contract=[0,1]} %1 %2
          %4:f64[4,2] = add %0 %3
          out %4}, length=7, num_carry=1, num_consts=0, reverse=false} %0 %1 %2
      out %3)"));
}

// Looking through the whole chain from each of its values would take minutes.
TEST_CASE("chains of tens of thousands of sums and products are read in parts") {
  for (const bool product : {false, true}) {
    const auto builder = Builder::create();
    const Value x = builder->input({DType::f64, {3}});
    Value sum = x;
    for (int i = 0; i < 30000; ++i) sum = product ? sum * x : sum + x;
    const Graph g = builder->finish(std::vector{sum});
    CHECK(contract_sums(g).nodes().size() == g.nodes().size());
  }
}

}  // namespace contract_sums_test
