// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every binding file shares. Bindings translate; they decide nothing.
#include <memory>
#include <string>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "braintrace/ir/value.h"

namespace py = pybind11;

namespace braintrace::python {

void init_errors();
void init_value(py::module_& m);
void init_value_methods(py::module_& m);
void init_ops(py::module_& m);
void init_ops_shape(py::module_& m);
void init_ops_etp(py::module_& m);
void init_control_flow(py::module_& m);
void init_state(py::module_& m);
void init_module(py::module_& m);
void init_nn(py::module_& m);
void init_initializers(py::module_& m);
void init_graph(py::module_& m);
void init_etrace(py::module_& m);
void init_report(py::module_& m);
void init_train(py::module_& m);
void init_schedules(py::module_& m);
void init_optimizers(py::module_& m);
void init_data(py::module_& m);
void init_algorithm(py::module_& m);
void init_certificate(py::module_& m);
void init_learner(py::module_& m);
void init_io(py::module_& m);
void init_synthetic(py::module_& m);
void init_signals(py::module_& m);
void init_executor(py::module_& m);
void init_run(py::module_& m);
// After all others: for every function of the module, its classes and submodules.
void init_argument_errors(py::handle scope);
// After that.
void init_quick_methods();

}  // namespace braintrace::python
