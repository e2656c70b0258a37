// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("element_wise") {
  check_op({.op = "element_wise",
            .build = [](const Values& in) -> Values { return {element_wise(in[0])}; },
            .inputs = {uniform({2, 3}, -1, 1)},
            .expect = {
                {{array({2}, {1, -2}, DType::f64)}, {array({2}, {1, -2}, DType::f64)}}}});
}

TEST_CASE("element_wise of a scalar through a hook") {
  check_op({.op = "element_wise",
            .build = [](const Values& in) -> Values {
              return {element_wise(in[0], [](const Value& w) { return sigmoid(w); })};
            },
            .inputs = {uniform({}, -1, 1)}});
}

TEST_CASE("element_wise is transparent on the tails of other ops and has no data") {
  CHECK(element_wise_op.etp->gradient_enabled);
  CHECK(element_wise_op.etp->x == -1);
}

TEST_CASE("element_wise refuses integers") {
  CHECK_THROWS_AS(element_wise(Array::from<std::int32_t>({1}, {3})), UserError);
}

}  // namespace
}  // namespace braintrace
