// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/plan_view.h"

#include <fmt/format.h>

namespace braintrace::plan {
namespace {

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

// Axes of size 1 say nothing about where elements lie.
struct Extent {
  std::int64_t size, stride;
  friend bool operator==(const Extent&, const Extent&) = default;
};
std::vector<Extent> extents(const View& v) {
  std::vector<Extent> list;
  for (std::size_t i = 0; i < v.shape.size(); ++i)
    if (v.shape[i] != 1) list.push_back({v.shape[i], v.strides[i]});
  return list;
}

// Neighbouring axes that run through memory as one become one.
std::vector<Extent> merged(const std::vector<Extent>& axes) {
  std::vector<Extent> list;
  for (const Extent& e : axes) {
    if (!list.empty() && list.back().stride == e.stride * e.size)
      list.back() = {list.back().size * e.size, e.stride};
    else
      list.push_back(e);
  }
  return list;
}

}  // namespace

View packed_view(int buffer, const Type& t) {
  return {buffer, t.dtype, t.shape, row_major_strides(t.shape), 0};
}

bool is_packed(const View& v) {
  if (v.size() == 0) return true;
  const std::vector<Extent> m = merged(extents(v));
  return m.empty() || (m.size() == 1 && m[0].stride == 1);
}

bool same_place(const View& a, const View& b) {
  if (a.buffer != b.buffer || a.dtype != b.dtype || a.shape != b.shape) return false;
  return a.size() == 0 || (a.offset == b.offset && extents(a) == extents(b));
}

View transposed(const View& v, const Ints& permutation) {
  View out = v;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    out.shape[i] = v.shape[at(permutation[i])];
    out.strides[i] = v.strides[at(permutation[i])];
  }
  return out;
}

View sliced(const View& v, const Ints& start, const Shape& size, const Ints& step) {
  View out = v;
  for (std::size_t i = 0; i < size.size(); ++i) {
    out.offset += size[i] == 0 ? 0 : start[i] * v.strides[i];
    out.shape[i] = size[i];
    out.strides[i] = v.strides[i] * step[i];
  }
  return out;
}

View part_of(const View& v, std::int64_t axis, std::int64_t start, std::int64_t size) {
  View out = v;
  out.shape[at(axis)] = size;
  if (size > 0) out.offset += start * v.strides[at(axis)];
  return out;
}

View stretched(const View& v, const Shape& shape, const Ints& in_axes) {
  View out = v;
  out.shape = shape;
  out.strides.assign(shape.size(), 0);
  for (std::size_t i = 0; i < in_axes.size(); ++i)
    if (v.shape[i] == shape[at(in_axes[i])]) out.strides[at(in_axes[i])] = v.strides[i];
  return out;
}

View step_of(const View& v) {
  View out = v;
  out.shape.erase(out.shape.begin());
  out.strides.erase(out.strides.begin());
  return out;
}

std::optional<View> reshaped(const View& v, const Shape& shape) {
  View out = v;
  out.shape = shape;
  out.strides = row_major_strides(shape);
  if (v.size() == 0) return out;
  const std::vector<Extent> from = merged(extents(v));
  // Each run of `from` must be cut by `shape` without remainder, from the last axis on.
  std::size_t run = from.size();
  std::int64_t left = 1, stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (left == 1) {
      if (run == 0) return std::nullopt;
      --run;
      left = from[run].size;
      stride = from[run].stride;
    }
    if (left % shape[i] != 0) return std::nullopt;
    out.strides[i] = stride;
    stride *= shape[i];
    left /= shape[i];
  }
  if (left != 1 || run != 0) return std::nullopt;
  return out;
}

std::optional<JoinedAxes> as_one(const View& v, const Ints& axes) {
  JoinedAxes e;
  bool any = false;
  for (std::int64_t axis : axes) {
    const auto a = static_cast<std::size_t>(axis);
    if (v.shape[a] == 1) continue;
    if (any && e.stride != v.strides[a] * v.shape[a]) return std::nullopt;
    e = {e.size * v.shape[a], v.strides[a]};
    any = true;
  }
  return e;
}

std::string to_string(const View& v) {
  return fmt::format("{} in {}", to_string(v.type()), v.buffer);
}

}  // namespace braintrace::plan
