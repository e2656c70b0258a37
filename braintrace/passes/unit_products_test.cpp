// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/unit_products.h"

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ir/print.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/dce.h"
#include "braintrace/passes/slice_products.h"
#include "braintrace/testing/pass_check.h"
#include "braintrace/transforms/lanes.h"

namespace unit_products_test {

using namespace braintrace;
using braintrace::testing::written;

namespace {

std::size_t num_products(const Graph& g) {
  return static_cast<std::size_t>(
      std::count_if(g.nodes().begin(), g.nodes().end(),
                    [](const Node& n) { return n.op->name == "dot_general"; }));
}

// How many products are left; values must stay.
std::size_t left_by(Graph (*pass)(const Graph&), const Graph& g) {
  const Graph after = dce(pass(g));
  testing::check_same_values(g, after);
  return num_products(after);
}
std::size_t left(const std::vector<Type>& types, const ValuesFn& f) {
  return left_by(unit_products, written(types, f));
}

const Type vector{DType::f64, {4}}, matrix{DType::f64, {4, 5}};
const Type steps{DType::f64, {3, 1, 4}}, numbers{DType::f64, {3, 4, 1}};
Value units() { return unit_vectors({DType::f64, {4}}); }

}  // namespace

TEST_CASE("unit vectors times a matrix are its rows") {
  CHECK(left({matrix}, [](const Values& in) {
          return Values{
              dot(units(), in[0]),
              dot_general(in[0], units(), {.lhs_contract = {0}, .rhs_contract = {0}})};
        }) == 0);
}

TEST_CASE("what multiplies unit vectors along either axis stays on the diagonal") {
  CHECK(left({steps, numbers, matrix}, [](const Values& in) {
          const Value u = expand_dims(units(), 0);  // [1,4,4]
          return Values{dot(-(u * in[0]) / (2.0 + square(in[1])), in[2]),
                        dot(in[1] * (in[0] * u), in[2]),
                        dot((u * in[0]) * (u * in[1]), in[2])};
        }) == 0);
}

TEST_CASE("unit vectors chosen instead of zero stay on the diagonal") {
  CHECK(left({steps, numbers, matrix}, [](const Values& in) {
          const Value u = expand_dims(units(), 0);  // [1,4,4]
          return Values{dot(select(in[0] > 0, u * in[1], 0), in[2]),
                        dot(select(in[1] > 0, 0, u), in[2])};
        }) == 0);
}

TEST_CASE("a condition that differs along both axes, or another choice than zero, sums") {
  CHECK(left({{DType::f64, {4, 4}}, matrix, vector}, [](const Values& in) {
          return Values{dot(select(in[0] > 0, units(), 0), in[1]),
                        dot(select(in[2] > 0, units(), 2.0), in[1])};
        }) == 2);
}

TEST_CASE("unit vectors are known where they repeat along other axes") {
  CHECK(left({matrix}, [](const Values& in) {
          Array u = zeros({4, 3, 4}, DType::f64);
          for (std::int64_t i = 0; i < u.size(); ++i)
            u.mutable_data<double>()[i] = i / 12 == i % 4 ? 1 : 0;
          return Values{dot(Value(u), in[0])};
        }) == 0);
}

TEST_CASE("unit vectors are known under other axes") {
  CHECK(left({{DType::f64, {2, 4, 3}}, vector}, [](const Values& in) {
          const Value u = transpose(reshape(units() * in[1], {4, 1, 1, 4}), {3, 2, 0, 1});
          return Values{
              dot_general(in[0], u * 3.0, {.lhs_contract = {1}, .rhs_contract = {2}}),
              dot_general(in[0], broadcast_to(u, {4, 2, 4, 1}),
                          {.lhs_contract = {1},
                           .rhs_contract = {2},
                           .lhs_batch = {0},
                           .rhs_batch = {1}})};
        }) == 0);
}

TEST_CASE("unit vectors along other axes are a factor like any other") {
  CHECK(left({{DType::f64, {4, 5}}, vector}, [](const Values& in) {
          const Value first = reshape(units() * in[1], {4, 4, 1});   // axes 0 and 1
          const Value second = reshape(units() * in[1], {1, 4, 4});  // axes 1 and 2
          return Values{dot_general(first * second, in[0],
                                    {.lhs_contract = {0}, .rhs_contract = {0}}),
                        dot_general(second * first, in[0],
                                    {.lhs_contract = {2}, .rhs_contract = {0}})};
        }) == 0);
}

TEST_CASE("products that need their sums keep them") {
  const Type square{DType::f64, {4, 4}};
  // A factor that moves along both axes, a matrix that is no unit, both axes summed, a
  // sum on top of the vectors.
  CHECK(left({square, matrix}, [](const Values& in) {
          const Value almost = full({4, 4}, 0.0, DType::f64);
          return Values{dot(units() * in[0], in[1]), dot(almost, in[1]),
                        dot_general(units(), in[0],
                                    {.lhs_contract = {0, 1}, .rhs_contract = {0, 1}}),
                        dot(units() + in[0], in[1])};
        }) == 4);
}

TEST_CASE("unit vectors in a loop are found there") {
  CHECK(
      left_by(unit_products,
              written({{DType::f64, {6, 4}}, {DType::f64, {4, 4}}}, [](const Values& in) {
                const Value w = in[1];
                const auto body = [w](const Values& x) {
                  const Value y = x[0] + dot(units() * x[1], w);
                  return Values{y, sum(y)};
                };
                const ScanResult r =
                    scan(body, {zeros({4, 4}, DType::f64)}, {in[0]}, {.length = 6});
                return Values{r.carry[0], r.ys[0]};
              })) == 0);
}

TEST_CASE("a part of a product is computed alone") {
  const Type left_type{DType::f64, {2, 7, 4}}, right_type{DType::f64, {2, 4, 5}};
  const Graph g = written({left_type, right_type}, [](const Values& in) {
    const Value y = dot_general(
        in[0], in[1],
        {.lhs_contract = {2}, .rhs_contract = {1}, .lhs_batch = {0}, .rhs_batch = {0}});
    return Values{slice(y, {1, 1, 0}, {1, 3, 2}, {1, 2, 3})};
  });
  const Graph after = dce(slice_products(g));
  testing::check_same_values(g, after);
  CHECK(after.nodes().back().op->name == "dot_general");
}

TEST_CASE("a product that is read as a whole too is not computed twice") {
  const Graph g = written({{DType::f64, {3, 4}}, matrix}, [](const Values& in) {
    const Value y = dot(in[0], in[1]);
    return Values{y, slice(y, {0, 0}, {1, 5})};
  });
  CHECK(print(slice_products(g)) == print(g));
}

}  // namespace unit_products_test
