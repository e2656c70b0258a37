// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strided windows on the buffers of a plan: what reshape, transpose, slice and broadcast
// become without moving data.
#include <optional>
#include <string>

#include "braintrace/ir/type.h"

namespace braintrace::plan {

struct View {
  int buffer = -1;
  DType dtype = DType::f32;
  Shape shape;
  Ints strides;             // in elements
  std::int64_t offset = 0;  // in elements

  std::int64_t size() const { return num_elements(shape); }
  Type type() const { return {dtype, shape}; }
};

View packed_view(int buffer, const Type& t);
bool is_packed(const View& v);  // row-major without gaps
// The same elements of the same buffer in the same order.
bool same_place(const View& a, const View& b);

View transposed(const View& v, const Ints& permutation);
View sliced(const View& v, const Ints& start, const Shape& size, const Ints& step);
// Part [start, start + size) of one axis.
View part_of(const View& v, std::int64_t axis, std::int64_t start, std::int64_t size);
// Input axis i becomes axis in_axes[i] of `shape`; axes of size 1 and new ones repeat.
View stretched(const View& v, const Shape& shape, const Ints& in_axes);
// Without axis 0, at its position 0. Needs: rank >= 1.
View step_of(const View& v);
// Nullopt when the elements do not lie so that strides can say it.
std::optional<View> reshaped(const View& v, const Shape& shape);

// A list of axes as one: nullopt when their elements do not follow one stride.
struct JoinedAxes {
  std::int64_t size = 1, stride = 1;
};
std::optional<JoinedAxes> as_one(const View& v, const Ints& axes);

std::string to_string(const View& v);  // "f32[2,3] in 4"

}  // namespace braintrace::plan
