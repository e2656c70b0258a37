// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

const SparseStructure kSorted = coo_structure(4, 3, {0, 0, 2, 3}, {1, 2, 0, 2});
const SparseStructure kMixed = coo_structure(4, 3, {3, 0, 2, 0}, {2, 1, 0, 2});

TEST_CASE("sparse_dot") {
  for (const SparseStructure& s : {kSorted, kMixed, transposed(kSorted)}) {
    const auto build = [&](const Values& in) -> Values {
      return {sparse_dot(in[0], in[1], s)};
    };
    check_op({.op = "sparse_dot",
              .build = build,
              .inputs = {uniform({s.in}, -1, 1), uniform({4}, -1, 1, 2)}});
    check_op({.op = "sparse_dot",
              .build = build,
              .inputs = {uniform({2, 3, s.in}, -1, 1), uniform({4}, -1, 1, 2)}});
  }
}

TEST_CASE("sparse_dot is sparse_matmul without a trace") {
  const Array x = uniform({2, 4}, -1, 1), w = uniform({4}, -1, 1, 2);
  CHECK(sparse_dot(x, w, kMixed).array() == sparse_matmul(x, w, kMixed).array());
}

TEST_CASE("sparse_dot refuses what does not fit") {
  CHECK_THROWS_WITH_AS(sparse_dot(zeros({3}), zeros({4}), kSorted),
                       doctest::Contains("x must be [..., 4], got [3]"), UserError);
  CHECK_THROWS_AS(sparse_dot(zeros({4}), zeros({5}), kSorted), UserError);
  CHECK_THROWS_WITH_AS(
      parse("in %0:f32[2] %1:f32[1] %2:f32[2] = sparse_dot {cols=[0], in=2, out=2, "
            "rows=[-1]} %0 %1 out %2"),
      doctest::Contains("rows holds -1"), UserError);
}

}  // namespace
}  // namespace braintrace
