// SPDX-License-Identifier: Apache-2.0
#pragma once
// A linear predictor of the gradient that the future will send to the hidden states at
// the end of a window (DNI). Its parameters are not part of the model.
#include <cstdint>
#include <map>

#include "braintrace/ir/value.h"

namespace braintrace {

struct SyntheticGradientOptions {
  double scale = 0;  // standard deviation of W at the start; 0 predicts nothing
  std::uint64_t seed = 0;
};

// M(H), as IR: H (*V, S) with its last position axis and states joined, times W, plus b,
// in the shape and type of H. W is (w, w), b (w), w = V[-1] S.
Value synthetic_gradient(const Value& h, const Value& w, const Value& b);

class SyntheticGradient {
 public:
  struct Parameters {
    Array w, b;  // f32
  };

  // One predictor per hidden group: index -> shape (*V, S).
  explicit SyntheticGradient(std::map<std::int64_t, Shape> group_shapes,
                             SyntheticGradientOptions options = {});

  // M of one group, with the present parameters as constants. UserError: no such group,
  // or H is not of the group's shape.
  Value estimate(std::int64_t group, const Value& h) const;

  const std::map<std::int64_t, Shape>& group_shapes() const { return shapes_; }
  const Parameters& parameters(std::int64_t group) const;
  // UserError unless W is (w, w) and b (w).
  void set_parameters(std::int64_t group, const Parameters& p);

 private:
  std::map<std::int64_t, Shape> shapes_;
  std::map<std::int64_t, Parameters> parameters_;
};

}  // namespace braintrace
