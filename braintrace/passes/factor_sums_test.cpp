// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/factor_sums.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace factor_sums_test {

using namespace braintrace;
using braintrace::testing::check_same_values;
using braintrace::testing::written;

namespace {

// Data of two kinds, three cotangents, an array of the size of the weight, small ones.
const std::vector<Type> types = {{DType::f64, {2, 7}}, {DType::f64, {2, 7}},
                                 {DType::f64, {2, 5}}, {DType::f64, {2, 5}},
                                 {DType::f64, {2, 5}}, {DType::f64, {7, 5}},
                                 {DType::f64, {2, 2}}, {DType::f64, {2, 2}}};

Value product(const Value& x, const Value& y) {
  return dot_general(x, y, {.lhs_contract = {0}, .rhs_contract = {0}});
}

// Products left, with every value the same.
std::int64_t products_left(const Graph& g) {
  const Graph after = dce(factor_sums(g));
  check_same_values(g, after);
  return std::count_if(after.nodes().begin(), after.nodes().end(),
                       [](const Node& n) { return n.op->name == "dot_general"; });
}

}  // namespace

TEST_CASE("products with a common left factor that are added become one") {
  CHECK(products_left(written(types, [](const Values& in) {
          return Values{product(in[0], in[2]) + product(in[0], in[3])};
        })) == 1);
}

TEST_CASE("products with a common right factor that are added become one") {
  CHECK(products_left(written(types, [](const Values& in) {
          return Values{product(in[0], in[2]) + product(in[1], in[2])};
        })) == 1);
}

TEST_CASE("products of one factor are found anywhere in a sum") {
  CHECK(products_left(written(types, [](const Values& in) {
          const Value old = product(in[1], in[3]) + (in[5] + product(in[0], in[4]));
          return Values{product(in[0], in[2]) + old};
        })) == 2);
}

TEST_CASE("products behind the same views and sums become one") {
  CHECK(products_left(written(types, [](const Values& in) {
          const auto seen = [&](const Value& d) {
            return sum(reshape(transpose(product(in[0], d), {1, 0}), {5, 7, 1}),
                       {.axes = {2}});
          };
          return Values{seen(in[2]) + seen(in[3]) + seen(in[4])};
        })) == 1);
}

TEST_CASE("factors that are as large as the product are products with a common factor") {
  CHECK(products_left(written(types, [](const Values& in) {
          const auto past = [&](const Value& d) {  // [2,5] of [2,7], made of [2,2]
            return dot(dot(d, in[0]), in[5]);
          };
          return Values{past(in[6]) + past(in[7])};
        })) == 2);
  CHECK(products_left(written(types, [](const Values& in) {
          const auto large = [&](const Value& w) { return dot(in[0], w * 2.0); };
          return Values{large(in[5]) + large(tanh(in[5]))};
        })) == 2);
}

TEST_CASE("chains that differ, or that somebody else reads, stay") {
  CHECK(products_left(written(types, [](const Values& in) {
          const Value a = reshape(product(in[0], in[2]), {35}),
                      b = reshape(product(in[0], in[3]), {35}),
                      c = reshape(transpose(product(in[0], in[4]), {1, 0}), {35});
          return Values{a + c, b + c, b};
        })) == 3);
}

TEST_CASE("products that somebody else reads, or whose sum does, stay") {
  CHECK(products_left(written(types, [](const Values& in) {
          const Value p = product(in[0], in[2]);
          return Values{p + product(in[0], in[3]), p};
        })) == 2);
  CHECK(products_left(written(types, [](const Values& in) {
          const Value s = product(in[0], in[2]) + in[5];
          return Values{s + product(in[0], in[3]), s};
        })) == 2);
}

TEST_CASE("products smaller than their factors stay") {
  CHECK(products_left(written(types, [](const Values& in) {
          const DotDims all{.lhs_contract = {0, 1}, .rhs_contract = {0, 1}};
          return Values{dot_general(in[2], in[3], all) + dot_general(in[2], in[4], all)};
        })) == 2);
}

TEST_CASE("products that contract other axes have no factor in common") {
  const std::vector<Type> square = {
      {DType::f64, {2, 2}}, {DType::f64, {2, 9}}, {DType::f64, {2, 9}}};
  CHECK(products_left(written(square, [](const Values& in) {
          const DotDims turned{.lhs_contract = {1}, .rhs_contract = {0}};
          return Values{product(in[0], in[1]) + dot_general(in[0], in[2], turned)};
        })) == 2);
}

}  // namespace factor_sums_test
