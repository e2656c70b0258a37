// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/fixed_random_feedback.h"

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/base/error.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

Array draw(std::int64_t n_target, std::int64_t n_layer, std::uint64_t key, double scale) {
  BT_REQUIRE(n_target > 0 && n_layer > 0,
             fmt::format("FixedRandomFeedback: sizes must be > 0, got {} and {}",
                         n_target, n_layer));
  const Array b = random_normal(rng_key(key), {n_target, n_layer}, DType::f32);
  return mul(b, scale).array();
}

}  // namespace

FixedRandomFeedback::FixedRandomFeedback(std::int64_t n_target, std::int64_t n_layer,
                                         std::uint64_t key,
                                         FixedRandomFeedbackOptions options)
    : matrix_(draw(n_target, n_layer, key, options.init_scale)) {}

FixedRandomFeedback::FixedRandomFeedback(Array matrix) : matrix_(std::move(matrix)) {
  BT_REQUIRE(matrix_.rank() == 2 && is_float(matrix_.dtype()),
             fmt::format("FixedRandomFeedback: B must be a float matrix, got {}{}",
                         to_string(matrix_.dtype()), to_string(matrix_.shape())));
}

Value FixedRandomFeedback::project(const Value& y) const {
  BT_REQUIRE(y.rank() >= 1 && y.dim(-1) == matrix_.shape()[0],
             fmt::format("FixedRandomFeedback: the last axis of y must be {}, got {}",
                         matrix_.shape()[0], to_string(y.shape())));
  return dot(y, matrix_.astype(y.dtype()));
}

}  // namespace braintrace
