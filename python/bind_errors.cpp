// SPDX-License-Identifier: Apache-2.0
// Library errors as Python exceptions: one class per ErrorKind, defined in _errors.py.
#include <cstring>

#include "bindings.h"

#include "braintrace/base/error.h"

namespace braintrace::python {
namespace {

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value:
      return "UserValueError";
    case ErrorKind::type:
      return "UserTypeError";
    case ErrorKind::not_implemented:
      return "UserNotImplementedError";
    case ErrorKind::not_supported:
      return "NotSupportedError";
    case ErrorKind::runtime:
      return "UserRuntimeError";
    case ErrorKind::compilation:
      return "CompilationError";
  }
  return "UserError";
}

void raise(const char* name, const char* message) {
  const py::object type = py::module_::import("braintrace_cpp._errors").attr(name);
  // Names of files may be no UTF-8.
  const auto size = static_cast<py::ssize_t>(std::strlen(message));
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(message, size, "backslashreplace"));
  PyErr_SetObject(type.ptr(), text.ptr());
}

// pybind11's text speaks of C++ types and compiler flags.
std::string readable(const std::string& text) {
  const auto from = text.find("<class '"), to = text.find("'>");
  if (from == text.npos || to == text.npos || to < from) return text;
  return "a value of type " + text.substr(from + 8, to - from - 8) + " does not fit here";
}

void translate(std::exception_ptr p) {
  try {
    if (p) std::rethrow_exception(p);
  } catch (const UserError& e) {
    raise(class_name(e.kind()), e.what());
  } catch (const InternalError& e) {
    raise("InternalError", e.what());
  } catch (const py::cast_error& e) {
    raise("UserTypeError", readable(e.what()).c_str());
  }
}

}  // namespace

void init_errors() { py::register_exception_translator(&translate); }

}  // namespace braintrace::python
