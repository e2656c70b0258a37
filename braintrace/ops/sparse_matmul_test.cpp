// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

// Input 0 -> outputs 1, 2; input 2 -> output 0; input 3 -> output 2. Input 1 is free.
const SparseStructure kSome = coo_structure(4, 3, {0, 0, 2, 3}, {1, 2, 0, 2});

TEST_CASE("sparse_matmul") {
  check_op(
      {.op = "sparse_matmul",
       .build = [](const Values& in) -> Values {
         return {sparse_matmul(in[0], in[1], kSome, in[2])};
       },
       .inputs = {uniform({2, 4}, -1, 1), uniform({4}, -1, 1, 2), uniform({3}, -1, 1, 3)},
       .expect = {
           {{array({4}, {1, 2, 3, 4}, DType::f64), array({4}, {5, 6, 7, 8}, DType::f64),
             array({3}, {0, 0, 0.5}, DType::f64)},
            {array({3}, {21, 5, 38.5}, DType::f64)}}}});
}

TEST_CASE("sparse_matmul of a vector and of two leading axes") {
  auto build = [](const Values& in) -> Values {
    return {sparse_matmul(in[0], in[1], kSome)};
  };
  check_op({.op = "sparse_matmul",
            .build = build,
            .inputs = {uniform({4}, -1, 1), uniform({4}, -1, 1, 2)}});
  check_op({.op = "sparse_matmul",
            .build = build,
            .inputs = {uniform({2, 3, 4}, -1, 1), uniform({4}, -1, 1, 2)}});
}

TEST_CASE("sparse_matmul without connections gives the bias") {
  const SparseStructure none = coo_structure(2, 2, {}, {});
  CHECK(sparse_matmul(ones({2}), zeros({0}), none, Value(array({3, 4}))).array() ==
        array({2}, {3, 4}));
}

TEST_CASE("sparse_matmul refuses what does not fit") {
  CHECK_THROWS_WITH_AS(
      sparse_matmul(zeros({4}), zeros({5}), kSome),
      doctest::Contains("weight must be [4], one per connection, got [5]"), UserError);
  CHECK_THROWS_AS(sparse_matmul(zeros({3}), zeros({4}), kSome), UserError);
  CHECK_THROWS_AS(sparse_matmul(zeros({4}), zeros({4}), kSome, Value(zeros({4}))),
                  UserError);
  CHECK_THROWS_WITH_AS(
      parse("in %0:f32[2] %1:f32[1] %2:f32[2] = sparse_matmul {cols=[5], in=2, out=2, "
            "rows=[0]} %0 %1 out %2"),
      doctest::Contains("cols holds 5"), UserError);
  CHECK_THROWS_AS(
      parse("in %0:f32[2] %1:f32[1] %2:f32[2] = sparse_matmul {cols=[0], in=2, "
            "out=-1, rows=[0]} %0 %1 out %2"),
      UserError);
}

TEST_CASE("sparse_matmul adjacency is the pattern transposed, for square ones only") {
  const std::vector<Type> in = {{DType::f32, {3}}, {DType::f32, {2}}};
  const std::vector<Type> out = {{DType::f32, {3}}};
  const Attrs attrs = {{"cols", IndexList{1, 2}},
                       {"in", std::int64_t{3}},
                       {"out", std::int64_t{3}},
                       {"rows", IndexList{0, 1}}};
  const auto a = sparse_matmul_op.etp->adjacency({in, out, attrs}, 3);
  REQUIRE(a);
  CHECK(a->depends ==
        std::vector<bool>{false, false, false, true, false, false, false, true, false});
  CHECK_FALSE(sparse_matmul_op.etp->adjacency({in, out, attrs}, 4));
}

TEST_CASE("sparse structures read the usual formats") {
  const SparseStructure csr = csr_structure(2, 3, {0, 2, 3}, {0, 2, 1});
  CHECK(csr.rows == Ints{0, 0, 1});
  CHECK(csr.cols == Ints{0, 2, 1});
  const SparseStructure csc = csc_structure(2, 3, {0, 1, 2, 3}, {0, 1, 0});
  CHECK(csc.rows == Ints{0, 1, 0});
  CHECK(csc.cols == Ints{0, 1, 2});
  const SparseStructure dense = dense_structure(array({2, 3}, {1, 0, 5, 0, -1, 0}));
  CHECK(dense.rows == csr.rows);
  CHECK(dense.cols == csr.cols);
  CHECK(dense.in == 2);
  CHECK(dense.out == 3);
}

TEST_CASE("random structures have no connection twice and follow their seed") {
  const SparseStructure s = random_structure(50, 40, 9, 3);
  CHECK(coo_structure(50, 40, s.rows, s.cols).rows.is_sorted());
  std::vector<int> degree(50, 0);
  for (std::int32_t i : s.rows) ++degree[static_cast<std::size_t>(i)];
  CHECK(*std::min_element(degree.begin(), degree.end()) == 5);
  CHECK(*std::max_element(degree.begin(), degree.end()) == 13);
  CHECK(random_structure(50, 40, 9, 3).cols == s.cols);
  CHECK_FALSE(random_structure(50, 40, 9, 4).cols == s.cols);
  CHECK_THROWS_WITH_AS(random_structure(3, 5, 4, 0), doctest::Contains("got a mean of 4"),
                       UserError);
}

TEST_CASE("sparse structures refuse broken lists") {
  CHECK_THROWS_WITH_AS(coo_structure(2, 2, {0, 0}, {1, 1}),
                       doctest::Contains("connection (0, 1) is stored twice"), UserError);
  CHECK_THROWS_AS(coo_structure(2, 2, {0}, {1, 1}), UserError);
  CHECK_THROWS_AS(coo_structure(2, 2, {2}, {0}), UserError);
  CHECK_THROWS_AS(coo_structure(2, 2, {0}, {-1}), UserError);
  CHECK_THROWS_AS(coo_structure(-1, 2, {}, {}), UserError);
  CHECK_THROWS_WITH_AS(csr_structure(2, 2, {0, 2, 1}, {0}),
                       doctest::Contains("pointers must not fall"), UserError);
  CHECK_THROWS_AS(csr_structure(2, 2, {0, 1}, {0}), UserError);
  CHECK_THROWS_AS(csr_structure(2, 2, {0, 1, 3}, {0, 1}), UserError);
  CHECK_THROWS_AS(csc_structure(2, 2, {1, 1, 1}, {0}), UserError);
  CHECK_THROWS_AS(csc_structure(2, 2, {0, 2, 2}, {1, 1}), UserError);
  CHECK_THROWS_AS(dense_structure(zeros({3})), UserError);
}

}  // namespace
}  // namespace braintrace
