// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fixed random projection from targets to a layer: feedback without weight symmetry.
#include <cstdint>

#include "braintrace/ir/value.h"

namespace braintrace {

struct FixedRandomFeedbackOptions {
  double init_scale = 0.1;  // standard deviation of the entries
};

class FixedRandomFeedback {
 public:
  // Draws B (n_target, n_layer). Same key, same matrix. UserError unless sizes are > 0.
  FixedRandomFeedback(std::int64_t n_target, std::int64_t n_layer, std::uint64_t key,
                      FixedRandomFeedbackOptions options = {});
  // A given matrix. UserError unless it is a float matrix.
  explicit FixedRandomFeedback(Array matrix);

  // y B, as IR: (..., n_target) -> (..., n_layer), in the type of y. No gradient flows to
  // B.
  Value project(const Value& y) const;
  const Array& matrix() const { return matrix_; }

 private:
  Array matrix_;
};

}  // namespace braintrace
