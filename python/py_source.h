// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequences that a Python function gives step by step.
#include "convert.h"
#include "py_module.h"
#include <fmt/format.h>

namespace braintrace::python {

// Asks a Python function for the arguments of a step. All steps must have one structure.
class PySource {
 public:
  PySource(const char* who, py::function at, DType floats)
      : who_(who), at_(std::move(at)), floats_(floats) {}

  std::vector<Array> operator()(std::int64_t t) {
    py::gil_scoped_acquire gil;
    const py::object given = at_(t);
    if (given.is_none())
      throw UserError(ErrorKind::type,
                      fmt::format("{}: the function of the step returned None for step "
                                  "{}; it must return the arguments of the step",
                                  who_, t));
    std::vector<Value> leaves;
    const FloatsAs width(floats_);
    Tree tree =
        flatten(py::isinstance<py::tuple>(given) ? given : py::make_tuple(given), leaves);
    if (!known_) args_ = tree;
    BT_REQUIRE(same_structure(args_, tree),
               fmt::format("{}: the arguments of step {} are not built as those of the "
                           "first step",
                           who_, t));
    known_ = true;
    return arrays_of(leaves);
  }
  const Tree& args() const { return args_; }

 private:
  const char* who_;
  py::function at_;
  DType floats_;
  Tree args_;
  bool known_ = false;
};

}  // namespace braintrace::python
