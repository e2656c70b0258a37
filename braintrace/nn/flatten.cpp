// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/flatten.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

Flatten::Flatten(Shape in_size) : in_size_(std::move(in_size)) {
  BT_REQUIRE(!in_size_.empty(), "Flatten: in_size must not be empty, got []");
  for (std::int64_t d : in_size_)
    internal::positive("Flatten", "every entry of in_size", d);
}

Value Flatten::update(Value x) {
  const Shape shape = x.shape();
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::int64_t start = 0;
  if (in_size_.empty()) {
    BT_REQUIRE(rank >= 1, "Flatten: x must have at least one axis, got []");
    start = normalize_axis("Flatten", start_axis_, rank);
  } else {
    const bool fits = shape.size() >= in_size_.size() &&
                      std::equal(in_size_.rbegin(), in_size_.rend(), shape.rbegin());
    BT_REQUIRE(fits, fmt::format("Flatten: x must end with {}, got {}",
                                 to_string(in_size_), to_string(shape)));
    start = rank - static_cast<std::int64_t>(in_size_.size());
  }
  Shape flat(shape.begin(), shape.begin() + start);
  flat.push_back(num_elements(Shape(shape.begin() + start, shape.end())));
  return reshape(x, flat);
}

Unflatten::Unflatten(Shape sizes) : sizes_(std::move(sizes)) {
  for (std::int64_t d : sizes_) internal::positive("Unflatten", "every size", d);
}

Value Unflatten::update(Value x) {
  internal::require_features("Unflatten", x, num_elements(sizes_));
  Shape shape = x.shape();
  shape.pop_back();
  shape.insert(shape.end(), sizes_.begin(), sizes_.end());
  return reshape(x, shape);
}

}  // namespace braintrace::nn
