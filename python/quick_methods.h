// SPDX-License-Identifier: Apache-2.0
#pragma once
// Methods that are called at every step, as C functions in front of the bound ones. They
// take what callers usually give; everything else, wrong arguments above all, goes on to
// the bound method, and exceptions are translated as everywhere.
#include "bindings.h"

namespace braintrace::python {

// The C++ object inside an object of exactly this type; null for any other.
template <class T>
T* held(PyObject* o) {
  static const py::detail::type_info* type =
      py::detail::get_type_info(typeid(T), /*throw_if_missing=*/true);
  if (Py_TYPE(o) != type->type) return nullptr;
  return reinterpret_cast<py::detail::instance*>(o)
      ->get_value_and_holder()
      .template value_ptr<T>();
}

// Sets Python's error from the exception that is being handled; null.
PyObject* raise_current_exception();
PyObject* call_bound(PyObject* bound, PyObject* self, PyObject* const* given,
                     Py_ssize_t count);

// `quick(self, arguments, their number)` gives the result, or null, without an error, for
// what it does not take.
template <PyObject* (*quick)(PyObject*, PyObject* const*, Py_ssize_t)>
class QuickMethod {
 public:
  // After init_argument_errors: bound methods refuse by name then.
  static void stand_before(py::handle type, const char* name) {
    bound_ = py::object(type.attr(name)).release().ptr();
    text_ = py::str(py::handle(bound_).attr("__doc__")).cast<std::string>();
    def_ = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
            METH_FASTCALL, text_.c_str()};
    PyObject* method =
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &def_);
    if (method == nullptr) throw py::error_already_set();
    type.attr(name) = py::reinterpret_steal<py::object>(method);
  }

 private:
  static PyObject* call(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    try {
      if (PyObject* result = quick(self, given, count)) return result;
    } catch (...) {
      return raise_current_exception();
    }
    return call_bound(bound_, self, given, count);
  }

  static inline PyObject* bound_ = nullptr;  // lives as long as the module
  static inline std::string text_;
  static inline PyMethodDef def_ = {};
};

}  // namespace braintrace::python
