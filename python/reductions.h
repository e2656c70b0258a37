// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions by name, shared by the functions and the methods of Value.
#include <span>
#include <utility>

#include "convert.h"

namespace braintrace::python {

using ReduceFn = Value (*)(Arg, ReduceOptions);

inline std::span<const std::pair<const char*, ReduceFn>> reductions() {
  static const std::pair<const char*, ReduceFn> table[] = {
      {"sum", sum}, {"mean", mean}, {"max", max}, {"min", min}, {"prod", prod}};
  return table;
}

// axis: None (all), an int or a sequence of ints.
inline ReduceOptions reduce_options(const py::object& axis, bool keepdims) {
  ReduceOptions o{.keepdims = keepdims};
  if (!axis.is_none()) o.axes = to_shape(axis);
  return o;
}

}  // namespace braintrace::python
