// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compile options from Python keywords, and the records a compiled graph holds.
#include "bindings.h"

#include "braintrace/etrace/options.h"

namespace braintrace::python {

// compat, include_hidden_perturb, include_recurrent_mixing, sparse_n,
// snap_max_jacobian_elements, batched, control_flow (a policy or a dict) and every named
// option.
CompileOptions compile_options(const py::dict& keywords);
// Takes one keyword; false when it is none of the compiler's.
bool set_compile_option(CompileOptions& o, const std::string& name,
                        const py::object& value);

void init_etrace_records(py::module_& m);

}  // namespace braintrace::python
