// SPDX-License-Identifier: Apache-2.0
#pragma once
// x[key] as NumPy reads it: integers, slices, None, ..., and one array of integers.
#include "bindings.h"

namespace braintrace::python {

Value index_value(const Value& x, const py::object& key);

}  // namespace braintrace::python
