// SPDX-License-Identifier: Apache-2.0
#include "quick_methods.h"

namespace braintrace::python {

// pybind11 translates what a bound function throws.
PyObject* raise_current_exception() {
  const std::exception_ptr thrown = std::current_exception();
  try {
    py::cpp_function([&] { std::rethrow_exception(thrown); })();
  } catch (py::error_already_set& e) {
    e.restore();
  }
  return nullptr;
}

PyObject* call_bound(PyObject* bound, PyObject* self, PyObject* const* given,
                     Py_ssize_t count) {
  std::vector<PyObject*> all = {self};
  all.insert(all.end(), given, given + count);
  return PyObject_Vectorcall(bound, all.data(), all.size(), nullptr);
}

}  // namespace braintrace::python
