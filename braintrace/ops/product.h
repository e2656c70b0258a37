// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the files of products and trainable ops share: operand types, axis moves, eval
// accumulation.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

// The arguments in one element type. Shapes stay as they are.
Values promoted(const std::vector<Arg>& args);

// jvp of an op that is linear in each of its two inputs.
std::vector<Tangent> product_jvp(const Site& s, std::span<const Tangent> d);

// The axis becomes axis 0, the others keep their order.
Value move_to_front(const Value& v, std::int64_t axis);

// The axes 0 .. rank-1 that are not in `taken`.
Ints other_axes(std::int64_t rank, const Ints& taken);

// The permutation that sends result axis i to place where[i].
Ints permutation_to(const Ints& where);

// UserError unless every entry is an axis of a rank-`rank` array and none repeats.
void check_distinct_axes(std::string_view who, const Ints& axes, std::int64_t rank);

// Size of one axis.
inline std::int64_t dim(const Shape& s, std::int64_t axis) {
  return s[static_cast<std::size_t>(axis)];
}

// The type sums of T run in, and the way back. Integers wrap around.
template <class T>
struct Accumulator {
  using type = double;
  static T result(double v) { return static_cast<T>(v); }
};
template <>
struct Accumulator<std::int32_t> {
  using type = std::uint32_t;
  static std::int32_t result(std::uint32_t v) { return static_cast<std::int32_t>(v); }
};
template <class T>
using Sum = typename Accumulator<T>::type;

}  // namespace braintrace
