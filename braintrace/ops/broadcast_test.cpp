// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("broadcast") {
  check_op({.op = "broadcast",
            .build =
                [](const Values& in) {
                  return Values{broadcast_to(in[0], {2, 3, 4})};
                },
            .inputs = {uniform({3, 1}, -1, 1)}});
  check_op({.op = "broadcast",
            .build =
                [](const Values& in) {
                  return Values{broadcast_to(in[0], {2, 2})};
                },
            .inputs = {uniform({}, -1, 1)},
            .expect = {{{scalar(3, DType::f64)}, {full({2, 2}, 3, DType::f64)}},
                       {{array({1, 2}, DType::f64)},
                        {array({2, 2}, {1, 2, 1, 2}, DType::f64)}}}});
}

TEST_CASE("broadcast stretches a size-1 axis to nothing") {
  check_op({.op = "broadcast",
            .build =
                [](const Values& in) {
                  return Values{broadcast_to(in[0], {0, 2})};
                },
            .inputs = {uniform({1, 2}, -1, 1)}});
}

TEST_CASE("broadcast_to names the shapes that do not fit") {
  CHECK_THROWS_WITH_AS(broadcast_to(zeros({2}), {3}),
                       doctest::Contains("broadcast: [2] does not broadcast to [3]"),
                       UserError);
  CHECK_THROWS_AS(broadcast_to(zeros({2, 1}), {2}), UserError);
  CHECK_THROWS_AS(broadcast_to(zeros({1}), {-1}), UserError);
}

}  // namespace
}  // namespace braintrace
