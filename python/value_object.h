// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values inside Python objects, found and made without looking their type up by name at
// every call: what one step of a small network costs is mostly this.
#include "bindings.h"

namespace braintrace::python {

// The Value an object holds; null for any other object.
const Value* value_in(py::handle h);
// A new object that holds it.
py::object value_object(Value v);
// For the set-up of the type: objects of value_object() go without a search either.
void set_up_dealloc(PyTypeObject& type);

}  // namespace braintrace::python
