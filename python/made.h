// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a Python object was made: the function and its arguments. What such objects show,
// and what pickling stores of them (_pickling.py).
#include <string>

#include "bindings.h"

namespace braintrace::python {

struct Made {
  std::string function;  // "schedule.cosine", below braintrace_cpp._core
  py::tuple args = py::tuple();
  py::dict kwargs = py::dict();

  std::string text() const {  // "cosine(1.0, 10)"
    std::string out = function.substr(function.rfind('.') + 1) + "(";
    std::string separator;
    for (py::handle a : args) {
      out += separator + py::repr(a).cast<std::string>();
      separator = ", ";
    }
    for (const auto& [name, value] : kwargs) {
      out += separator + name.cast<std::string>() + "=" +
             py::repr(value).cast<std::string>();
      separator = ", ";
    }
    return out + ")";
  }
  py::tuple parts() const { return py::make_tuple(function, args, kwargs); }
};

// A value of the library that knows how it was made.
template <class T>
struct Recorded : T {
  Made made;
};

}  // namespace braintrace::python
