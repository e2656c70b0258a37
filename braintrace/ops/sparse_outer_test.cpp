// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

const SparseStructure kOuterSorted = coo_structure(4, 3, {0, 0, 2, 3}, {1, 2, 0, 2});
const SparseStructure kOuterMixed = coo_structure(4, 3, {3, 0, 2, 0}, {2, 1, 0, 2});

TEST_CASE("sparse_outer") {
  for (const SparseStructure& s : {kOuterSorted, kOuterMixed}) {
    const auto build = [&](const Values& in) -> Values {
      return {sparse_outer(in[0], in[1], s)};
    };
    check_op({.op = "sparse_outer",
              .build = build,
              .inputs = {uniform({4}, -1, 1), uniform({3}, -1, 1, 2)}});
    check_op({.op = "sparse_outer",
              .build = build,
              .inputs = {uniform({2, 3, 4}, -1, 1), uniform({2, 3, 3}, -1, 1, 2)}});
  }
}

TEST_CASE("sparse_outer picks stored entries of the outer product") {
  const Array x = array({2, 4}, {1, 2, 3, 4, 0, 0, 1, 0});
  const Array y = array({2, 3}, {5, 6, 7, 10, 0, 0});
  CHECK(sparse_outer(x, y, kOuterSorted).array() == array({4}, {6, 7, 25, 28}));
}

TEST_CASE("sparse_outer refuses what does not fit") {
  CHECK_THROWS_WITH_AS(sparse_outer(zeros({2, 4}), zeros({3, 3}), kOuterSorted),
                       doctest::Contains("leading axes must agree, got [2,4] and [3,3]"),
                       UserError);
  CHECK_THROWS_WITH_AS(sparse_outer(zeros({4}), zeros({4}), kOuterSorted),
                       doctest::Contains("y must be [..., 3], got [4]"), UserError);
}

}  // namespace
}  // namespace braintrace
