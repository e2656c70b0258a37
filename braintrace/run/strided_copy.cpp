// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "braintrace/run/row_kernels.h"

namespace braintrace {
namespace {

template <class T>
void copy_row(const std::byte* from, std::byte* to, std::int64_t n,
              std::int64_t from_step, std::int64_t to_step) {
  for (std::int64_t i = 0; i < n; ++i) {
    T v;
    std::memcpy(&v, from + i * from_step, sizeof v);
    std::memcpy(to + i * to_step, &v, sizeof v);
  }
}

}  // namespace

StridedCopy::StridedCopy(std::size_t element_bytes, const Shape& shape,
                         const Ints& from_strides, const Ints& to_strides)
    : bytes_(element_bytes) {
  const auto b = static_cast<std::int64_t>(bytes_);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) empty_ = true;
    if (shape[i] == 1) continue;
    const Axis a{shape[i], from_strides[i] * b, to_strides[i] * b};
    if (!outer_.empty() && outer_.back().from == a.from * a.size &&
        outer_.back().to == a.to * a.size)
      outer_.back() = {outer_.back().size * a.size, a.from, a.to};
    else
      outer_.push_back(a);
  }
  if (outer_.empty()) {
    inner_ = {1, b, b};
    return;
  }
  // The target is written along its own order: its smallest stride runs innermost.
  const auto smallest =
      std::min_element(outer_.begin(), outer_.end(),
                       [](const Axis& x, const Axis& y) { return x.to < y.to; });
  inner_ = *smallest;
  outer_.erase(smallest);
  // Around it the axis along which the source lies together.
  if (inner_.from == b || outer_.empty()) return;
  const auto together =
      std::min_element(outer_.begin(), outer_.end(),
                       [](const Axis& x, const Axis& y) { return x.from < y.from; });
  turns_ = together->from == b && inner_.to == b;
  std::rotate(together, together + 1, outer_.end());
}

// Rows of the source become columns.
void StridedCopy::turn(const std::byte* from, std::byte* to) const {
  const auto b = static_cast<std::int64_t>(bytes_);
  const Axis& lines = outer_.back();
  turn_matrix(bytes_, {lines.size, inner_.size, inner_.from / b, lines.to / b}, from, to);
}

void StridedCopy::row(const std::byte* from, std::byte* to) const {
  const auto b = static_cast<std::int64_t>(bytes_);
  const Axis& a = inner_;
  if (a.from == b && a.to == b) {
    if (from != to) std::memcpy(to, from, static_cast<std::size_t>(a.size * b));
  } else if (bytes_ == 4) {
    copy_row<std::uint32_t>(from, to, a.size, a.from, a.to);
  } else if (bytes_ == 8) {
    copy_row<std::uint64_t>(from, to, a.size, a.from, a.to);
  } else if (bytes_ == 2) {
    copy_row<std::uint16_t>(from, to, a.size, a.from, a.to);
  } else {
    copy_row<std::uint8_t>(from, to, a.size, a.from, a.to);
  }
}

void StridedCopy::rows(const std::byte* from, std::byte* to, std::size_t axis) const {
  if (axis == outer_.size()) return row(from, to);
  if (turns_ && axis + 1 == outer_.size() && bytes_ >= 4) return turn(from, to);
  const Axis& a = outer_[axis];
  for (std::int64_t i = 0; i < a.size; ++i)
    rows(from + i * a.from, to + i * a.to, axis + 1);
}

void StridedCopy::run(const void* from, void* to) const {
  if (empty_) return;
  rows(static_cast<const std::byte*>(from), static_cast<std::byte*>(to), 0);
}

}  // namespace braintrace
