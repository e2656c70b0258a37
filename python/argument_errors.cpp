// SPDX-License-Identifier: Apache-2.0
// Calls that pybind11 refuses ("incompatible function arguments", "Unable to cast") raise
// UserTypeError with a message for people (_errors.py), as every other mistake of the
// caller. pybind11 sends all calls through one C function with the TypeError built in;
// ours stands in front of it.
#include <cstring>

#include "bindings.h"

namespace braintrace::python {
namespace {

// pybind11's, the same for all functions; one of the two.
PyCFunctionWithKeywords dispatcher = nullptr;
_PyCFunctionFastWithKeywords fast_dispatcher = nullptr;

bool is_refusal(PyObject* text) {
  if (text == nullptr || !PyUnicode_Check(text)) return false;
  const char* s = PyUnicode_AsUTF8(text);
  if (s == nullptr) return false;
  return std::strstr(s, "(): incompatible ") != nullptr ||
         std::strstr(s, "does not fit here") != nullptr;
}

// A constructor is called with the object to be made, which must not be looked at.
bool is_unmade(PyObject* o) {
  const auto* base =
      reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  if (PyType_IsSubtype(Py_TYPE(o), const_cast<PyTypeObject*>(base)) == 0) return false;
  return !reinterpret_cast<py::detail::instance*>(o)
              ->get_value_and_holder()
              .holder_constructed();
}

py::tuple made_arguments(PyObject* args) {
  const auto all = py::reinterpret_borrow<py::tuple>(args);
  if (all.empty() || !is_unmade(all[0].ptr())) return all;
  return all[py::slice(1, static_cast<py::ssize_t>(all.size()), 1)];
}

void raise_as_user_error(PyObject* args, PyObject* kwargs) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(value));
  if (!is_refusal(text.ptr())) return PyErr_Restore(type, value, trace);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  const py::module_ errors = py::module_::import("braintrace_cpp._errors");
  const py::handle given_names = kwargs == nullptr ? Py_None : kwargs;
  const py::object message =
      errors.attr("_refusal")(text, made_arguments(args), given_names);
  PyErr_SetObject(errors.attr("UserTypeError").ptr(), message.ptr());
}

bool failed_by_type(const PyObject* result) {
  return result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* result = dispatcher(self, args, kwargs);
  if (failed_by_type(result)) raise_as_user_error(args, kwargs);
  return result;
}

// The same where arguments come as an array (pybind11 3.1 and later).
PyObject* call_fast(PyObject* self, PyObject* const* given, Py_ssize_t flags,
                    PyObject* names) {
  PyObject* result = fast_dispatcher(self, given, flags, names);
  if (!failed_by_type(result)) return result;
  const auto count =
      static_cast<std::size_t>(PyVectorcall_NARGS(static_cast<std::size_t>(flags)));
  py::tuple args(count);
  for (std::size_t i = 0; i < count; ++i)
    args[i] = py::reinterpret_borrow<py::object>(given[i]);
  py::dict kwargs;
  if (names != nullptr)
    for (py::handle name : py::reinterpret_borrow<py::tuple>(names))
      kwargs[name] =
          py::reinterpret_borrow<py::object>(given[args.size() + kwargs.size()]);
  raise_as_user_error(args.ptr(), kwargs.ptr());
  return nullptr;
}

// Puts `ours` in the place of the function; `theirs` is what stood there.
template <class F>
void replace(PyMethodDef& def, F ours, F& theirs) {
  const auto now = reinterpret_cast<F>(reinterpret_cast<void (*)()>(def.ml_meth));
  if (now == ours) return;
  theirs = now;
  def.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(ours));
}

void stand_in_front(py::handle item) {
  py::object f = py::reinterpret_borrow<py::object>(item);
  if (PyInstanceMethod_Check(f.ptr()))
    f = py::reinterpret_borrow<py::object>(PyInstanceMethod_GET_FUNCTION(f.ptr()));
  else if (Py_IS_TYPE(f.ptr(), &PyStaticMethod_Type))
    f = f.attr("__func__");
  if (!PyCFunction_CheckExact(f.ptr())) return;
  PyMethodDef& def = *reinterpret_cast<PyCFunctionObject*>(f.ptr())->m_ml;
  if (def.ml_flags == (METH_VARARGS | METH_KEYWORDS)) replace(def, &call, dispatcher);
  if (def.ml_flags == (METH_FASTCALL | METH_KEYWORDS))
    replace(def, &call_fast, fast_dispatcher);
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
