// SPDX-License-Identifier: Apache-2.0
// The literal of ir/, checked like every other op.
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("constant") {
  const Array literal = array({1, -2, 4}, DType::f64);
  check_op(
      {.op = "constant",
       .build = [&](const Values& in) -> Values { return {in[0] * literal}; },
       .inputs = {uniform({2, 3}, -1, 1)},
       .expect = {{{array({3, 3, 3}, DType::f64)}, {array({3, -6, 12}, DType::f64)}}}});
}

}  // namespace
}  // namespace braintrace
