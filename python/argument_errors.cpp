// SPDX-License-Identifier: Apache-2.0
// Calls that pybind11 refuses ("incompatible function arguments") raise UserTypeError, as
// every other mistake of the caller. pybind11 sends all calls through one C function with
// the TypeError built in; ours stands in front of it.
#include <cstring>

#include "bindings.h"

namespace braintrace::python {
namespace {

PyCFunctionWithKeywords dispatcher = nullptr;  // pybind11's, the same for all functions

void raise_as_user_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(value));
  const bool refused =
      text && std::strstr(PyUnicode_AsUTF8(text.ptr()), "(): incompatible ") != nullptr;
  if (!refused) return PyErr_Restore(type, value, trace);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  const py::object user =
      py::module_::import("braintrace_cpp._errors").attr("UserTypeError");
  PyErr_SetObject(user.ptr(), text.ptr());
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* result = dispatcher(self, args, kwargs);
  if (result == nullptr && PyErr_Occurred() == PyExc_TypeError) raise_as_user_error();
  return result;
}

void stand_in_front(py::handle item) {
  py::object f = py::reinterpret_borrow<py::object>(item);
  if (PyInstanceMethod_Check(f.ptr()))
    f = py::reinterpret_borrow<py::object>(PyInstanceMethod_GET_FUNCTION(f.ptr()));
  else if (Py_IS_TYPE(f.ptr(), &PyStaticMethod_Type))
    f = f.attr("__func__");
  if (!PyCFunction_CheckExact(f.ptr())) return;
  PyMethodDef* def = reinterpret_cast<PyCFunctionObject*>(f.ptr())->m_ml;
  if (def->ml_flags != (METH_VARARGS | METH_KEYWORDS)) return;
  const auto now = reinterpret_cast<PyCFunctionWithKeywords>(
      reinterpret_cast<void (*)()>(def->ml_meth));
  if (now == call) return;
  dispatcher = now;
  def->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call));
}

}  // namespace

void init_argument_errors(py::handle scope) {
  for (const auto& [name, item] : py::dict(scope.attr("__dict__"))) {
    const bool inner = PyModule_Check(item.ptr()) || PyType_Check(item.ptr());
    if (inner)
      init_argument_errors(item);
    else
      stand_in_front(item);
  }
}

}  // namespace braintrace::python
