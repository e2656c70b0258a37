// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "braintrace/base/divide.h"
#include "braintrace/run/row_kernels.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

constexpr std::int64_t kLineBytes = 64;  // of the caches
// Lines turned at once where their targets lie far apart: as many as a set of the nearest
// cache holds, which they may all fall on.
constexpr std::int64_t kStrip = 8;

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
  turns_ = together->from == b && inner_.to == b && bytes_ >= 4;
  std::rotate(together, together + 1, outer_.end());
  if (!turns_ || outer_.size() < 2) return;
  const auto neighbours =
      std::min_element(outer_.begin(), outer_.end() - 1,
                       [](const Axis& x, const Axis& y) { return x.to < y.to; });
  strips_ = neighbours->to < kLineBytes && outer_.back().to >= kLineBytes;
  if (strips_) std::rotate(neighbours, neighbours + 1, outer_.end() - 1);
}

// Rows of the source become columns.
void StridedCopy::turn(const std::byte* from, std::byte* to, std::int64_t lines) const {
  const auto b = static_cast<std::int64_t>(bytes_);
  turn_matrix(bytes_, {lines, inner_.size, inner_.from / b, outer_.back().to / b}, from,
              to);
}

// A few lines of all neighbours, then the next few: what shares a line of the target is
// written one after the other.
void StridedCopy::turn_strips(const std::byte* from, std::byte* to,
                              const Axis& neighbours) const {
  const Axis& lines = outer_.back();
  for (std::int64_t line = 0; line < lines.size; line += kStrip)
    for (std::int64_t i = 0; i < neighbours.size; ++i)
      turn(from + i * neighbours.from + line * lines.from,
           to + i * neighbours.to + line * lines.to, std::min(kStrip, lines.size - line));
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
  const Axis& a = outer_[axis];
  if (turns_ && axis + 1 == outer_.size()) return turn(from, to, a.size);
  if (strips_ && axis + 2 == outer_.size()) return turn_strips(from, to, a);
  for (std::int64_t i = 0; i < a.size; ++i)
    rows(from + i * a.from, to + i * a.to, axis + 1);
}

void StridedCopy::run(const void* from, void* to, ThreadPool& pool) const {
  if (empty_) return;
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  constexpr std::int64_t kParts = 16;
  constexpr double kNsPerElement = 0.2;
  double elements = static_cast<double>(inner_.size);
  for (const Axis& a : outer_) elements *= static_cast<double>(a.size);
  // The last axes are those that run in blocks.
  const std::size_t in_blocks = strips_ ? 2 : turns_ ? 1 : 0;
  if (outer_.size() <= in_blocks || elements * kNsPerElement < kSharedWork)
    return rows(source, target, 0);
  const Axis& a = outer_[0];
  const std::int64_t part = divided_up(a.size, kParts);
  pool.for_tiles(divided_up(a.size, part), [&](std::int64_t p, int) {
    for (std::int64_t i = p * part; i < std::min(a.size, (p + 1) * part); ++i)
      rows(source + i * a.from, target + i * a.to, 1);
  });
}

}  // namespace braintrace
