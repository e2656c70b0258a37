// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/kappa_filter.h"

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

Value kappa_filtered(const Value& v, const Value& x, double kappa) {
  return astype(kappa * v + (1 - kappa) * x, v.dtype());
}

KappaFilter::KappaFilter(Array init, double kappa)
    : init_(std::move(init)), value_(init_), kappa_(kappa) {
  BT_REQUIRE(kappa >= 0 && kappa < 1,
             fmt::format("KappaFilter: kappa must be in [0, 1), got {}", kappa));
  BT_REQUIRE_KIND(is_float(init_.dtype()), ErrorKind::type,
                  fmt::format("KappaFilter: the initial value must be f32 or f64, got {}",
                              to_string(init_.dtype())));
}

const Array& KappaFilter::update(const Array& x) {
  BT_REQUIRE(x.shape() == value_.shape(),
             fmt::format("KappaFilter: x must have the shape {}, got {}",
                         to_string(value_.shape()), to_string(x.shape())));
  value_ = kappa_filtered(value_, x, kappa_).array();
  return value_;
}

void KappaFilter::reset(std::optional<std::int64_t> batch_size) {
  value_ = init_;
  if (!batch_size) return;
  BT_REQUIRE(*batch_size >= 1,
             fmt::format("KappaFilter: batch_size must be >= 1, got {}", *batch_size));
  Shape shape = init_.shape();
  shape.insert(shape.begin(), *batch_size);
  value_ = init_.broadcast_to(shape).contiguous();
}

}  // namespace braintrace
