// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace copy_test {

using namespace braintrace;
using namespace braintrace::testing;

TEST_CASE("copy") {
  check_op({.op = "copy",
            .build = [](const Values& in) { return Values{copy(in[0])}; },
            .inputs = {uniform({3, 4}, -2, 2)},
            .expect = {{{array({1, -2}, DType::f64)}, {array({1, -2}, DType::f64)}}}});
}

}  // namespace copy_test
