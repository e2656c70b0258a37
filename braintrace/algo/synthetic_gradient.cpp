// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/synthetic_gradient.h"

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/base/error.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

// (*V, S) -> (*V[:-1], V[-1] S)
Shape joined(Shape s) {
  if (s.size() < 2) return s;
  const std::int64_t states = s.back();
  s.pop_back();
  s.back() *= states;
  return s;
}

}  // namespace

Value synthetic_gradient(const Value& h, const Value& w, const Value& b) {
  const Value flat = reshape(h, joined(h.shape()));
  const Value m = dot(flat, astype(w, h.dtype())) + astype(b, h.dtype());
  return reshape(m, h.shape());
}

SyntheticGradient::SyntheticGradient(std::map<std::int64_t, Shape> group_shapes,
                                     SyntheticGradientOptions options)
    : shapes_(std::move(group_shapes)) {
  for (const auto& [group, shape] : shapes_) {
    BT_REQUIRE(!shape.empty() && num_elements(shape) > 0,
               fmt::format("SyntheticGradient: the shape of group {} must be (*V, S), "
                           "got {}",
                           group, to_string(shape)));
    const std::int64_t width = joined(shape).back();
    const RngKey key = fold_in(rng_key(options.seed), static_cast<std::uint64_t>(group));
    const Array w = random_normal(key, {width, width}, DType::f32);
    parameters_[group] = {mul(w, options.scale).array(), zeros({width})};
  }
}

Value SyntheticGradient::estimate(std::int64_t group, const Value& h) const {
  const Parameters& p = parameters(group);
  BT_REQUIRE(h.shape() == shapes_.at(group),
             fmt::format("SyntheticGradient: group {} has the shape {}, got {}", group,
                         to_string(shapes_.at(group)), to_string(h.shape())));
  return synthetic_gradient(h, p.w, p.b);
}

const SyntheticGradient::Parameters& SyntheticGradient::parameters(
    std::int64_t group) const {
  const auto it = parameters_.find(group);
  BT_REQUIRE(it != parameters_.end(),
             fmt::format("SyntheticGradient: there is no group {}", group));
  return it->second;
}

void SyntheticGradient::set_parameters(std::int64_t group, const Parameters& p) {
  const Parameters& old = parameters(group);
  BT_REQUIRE(p.w.shape() == old.w.shape() && p.b.shape() == old.b.shape(),
             fmt::format("SyntheticGradient: group {} has W {} and b {}, got {} and {}",
                         group, to_string(old.w.shape()), to_string(old.b.shape()),
                         to_string(p.w.shape()), to_string(p.b.shape())));
  parameters_[group] = {p.w.astype(DType::f32), p.b.astype(DType::f32)};
}

}  // namespace braintrace
