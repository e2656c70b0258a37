// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exchange of arrays with other libraries through DLPack capsules, without copies where
// the memory is packed.
#include "bindings.h"

#include "braintrace/array/array.h"

namespace braintrace::python {

py::capsule to_dlpack(const Array& a);   // UserError: bf16 arrays
Value from_dlpack(const py::object& x);  // CPU memory only; UserError otherwise

}  // namespace braintrace::python
