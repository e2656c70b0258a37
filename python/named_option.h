// SPDX-License-Identifier: Apache-2.0
#pragma once
// One option of a call from its Python object.
#include "bindings.h"
#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace::python {

// UserError naming function, option and value unless the object is a T.
template <class T>
T option_as(const char* who, std::string_view name, const char* wanted, py::handle h) {
  py::detail::make_caster<T> caster;
  if (!caster.load(h, true))
    throw UserError(ErrorKind::type,
                    fmt::format("{}: {} must be {}, got {}", who, name, wanted,
                                py::repr(h).cast<std::string>()));
  return py::detail::cast_op<T>(std::move(caster));
}

constexpr const char* an_integer = "an integer";
constexpr const char* a_seed = "an integer >= 0";
constexpr const char* a_number = "a number";
constexpr const char* a_name = "a name";
constexpr const char* a_truth = "True or False";

}  // namespace braintrace::python
