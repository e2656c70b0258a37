// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/fixed_random_feedback.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/testing/tolerance.h"

namespace fixed_random_feedback_test {

using namespace braintrace;

TEST_CASE("fixed feedback projects along the last axis") {
  const FixedRandomFeedback f(array({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(f.project(array({1, 10})).array() == array({41, 52, 63}));
  CHECK(f.project(array({2, 2}, {1, 0, 0, 1})).array() ==
        array({2, 3}, {1, 2, 3, 4, 5, 6}));
}

TEST_CASE("fixed feedback computes in the type of its input") {
  const FixedRandomFeedback f(2, 3, 7);
  CHECK(f.matrix().dtype() == DType::f32);
  CHECK(f.project(zeros({2}, DType::f64)).dtype() == DType::f64);
}

TEST_CASE("fixed feedback has the asked scale and depends on its key alone") {
  const FixedRandomFeedback f(50, 40, 7), again(50, 40, 7), other(50, 40, 8);
  CHECK(f.matrix() == again.matrix());
  CHECK(!(f.matrix() == other.matrix()));
  const auto deviation = [](const Array& b) {
    double squares = 0;
    for (double v : b.to_doubles()) squares += v * v;
    return std::sqrt(squares / static_cast<double>(b.size()));
  };
  // 2000 draws: the deviation is known to about 1.6 percent.
  CHECK(deviation(f.matrix()) > 0.09);
  CHECK(deviation(f.matrix()) < 0.11);
  const FixedRandomFeedback wide(50, 40, 7, {.init_scale = 2});
  CHECK(deviation(wide.matrix()) ==
        doctest::Approx(20 * deviation(f.matrix())).epsilon(tol::f32));
}

TEST_CASE("fixed feedback refuses empty sizes, vectors and other widths") {
  CHECK_THROWS_WITH_AS(FixedRandomFeedback(0, 3, 7),
                       "FixedRandomFeedback: sizes must be > 0, got 0 and 3", UserError);
  CHECK_THROWS_WITH_AS(FixedRandomFeedback(array({1, 2})),
                       "FixedRandomFeedback: B must be a float matrix, got f32[2]",
                       UserError);
  CHECK_THROWS_WITH_AS(FixedRandomFeedback(2, 3, 7).project(zeros({3})),
                       "FixedRandomFeedback: the last axis of y must be 2, got [3]",
                       UserError);
}

}  // namespace fixed_random_feedback_test
