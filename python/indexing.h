// SPDX-License-Identifier: Apache-2.0
#pragma once
// x[key] as NumPy reads it: integers, slices, None, ..., and one array of integers.
#include "bindings.h"

namespace braintrace::python {

Value index_value(const Value& x, const py::object& key);

// Without one axis of size 1, or without all of them.
Value squeezed(const Value& v, const std::optional<std::int64_t>& axis);

}  // namespace braintrace::python
