// SPDX-License-Identifier: Apache-2.0
// The extension module braintrace_cpp._core.
#include <cstdlib>

#include "bindings.h"

PYBIND11_MODULE(_core, m) {
  namespace bt = braintrace::python;
  m.doc() = "Bindings of braintrace; use the package braintrace_cpp.";
  m.attr("__version__") = BRAINTRACE_VERSION;
  py::options options;
  // Only the program that writes the type stubs asks for them.
  if (std::getenv("BRAINTRACE_SIGNATURES") == nullptr)
    options.disable_function_signatures();
  bt::init_errors();
  bt::init_value(m);
  bt::init_value_methods(m);
  bt::init_ops(m);
  bt::init_ops_shape(m);
  bt::init_ops_etp(m);
  bt::init_control_flow(m);
  bt::init_state(m);
  bt::init_module(m);
  bt::init_nn(m);
  py::module_ init = m.def_submodule("init", "How parameters start.");
  bt::init_initializers(init);
  bt::init_graph(m);
  bt::init_etrace(m);
  bt::init_report(m);
  bt::init_train(m);
  bt::init_schedules(m);
  bt::init_optimizers(m);
  bt::init_data(m);
  bt::init_algorithm(m);
  bt::init_certificate(m);
  bt::init_learner(m);
  bt::init_io(m);
  bt::init_synthetic(m);
  bt::init_signals(m);
  bt::init_executor(m);
  bt::init_run(m);
  bt::init_argument_errors(m);
  bt::init_quick_methods();
}
