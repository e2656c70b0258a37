// SPDX-License-Identifier: Apache-2.0
// Operators and methods of Value, as NumPy has them.
#include "convert.h"
#include "indexing.h"
#include "reductions.h"

namespace braintrace::python {
namespace {

using BinaryMethod = Value (*)(Arg, Arg);

// a op b, and b op a for operands that are not Values. NotImplemented for what is no
// array.
void def_binary(py::class_<Value>& c, const std::string& name, BinaryMethod f,
                bool reflected) {
  const auto call = [f](const py::object& a, const py::object& b,
                        bool swap) -> py::object {
    const auto x = to_arg(a), y = to_arg(b);
    if (!x || !y) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    return py::cast(swap ? f(*y, *x) : f(*x, *y));
  };
  using Objects = const py::object&;
  c.def(("__" + name + "__").c_str(),
        [call](Objects a, Objects b) { return call(a, b, false); });
  if (reflected)
    c.def(("__r" + name + "__").c_str(),
          [call](Objects a, Objects b) { return call(a, b, true); });
}

Value floor_divide(Arg a, Arg b) { return floor(div(a, b)); }
Value remainder(Arg a, Arg b) { return sub(a, mul(floor(div(a, b)), b)); }

Shape shape_from(const py::args& args) {
  return to_shape(args.size() == 1 ? args[0] : py::object(args));
}

Value transposed(const Arg& v, const py::args& axes) {
  return axes.empty() ? transpose(v) : transpose(v, shape_from(axes));
}

void def_operators(py::class_<Value>& c) {
  const std::pair<const char*, BinaryMethod> arithmetic[] = {{"add", add},
                                                             {"sub", sub},
                                                             {"mul", mul},
                                                             {"truediv", div},
                                                             {"pow", pow},
                                                             {"matmul", stacked_dot},
                                                             {"floordiv", floor_divide},
                                                             {"mod", remainder},
                                                             {"and", logical_and},
                                                             {"or", logical_or},
                                                             {"xor", logical_xor}};
  for (const auto& [name, f] : arithmetic) def_binary(c, name, f, true);
  const std::pair<const char*, BinaryMethod> comparisons[] = {
      {"lt", less},          {"le", less_equal}, {"gt", greater},
      {"ge", greater_equal}, {"eq", equal},      {"ne", not_equal}};
  for (const auto& [name, f] : comparisons) def_binary(c, name, f, false);
  c.def("__neg__", [](const Arg& v) { return neg(v); })
      .def("__pos__", [](const Value& v) { return v; })
      .def("__abs__", [](const Arg& v) { return abs(v); })
      .def("__invert__", [](const Arg& v) { return logical_not(v); });
}

void def_shape_methods(py::class_<Value>& c) {
  c.def("__len__",
        [](const Value& v) {
          if (v.rank() == 0) throw py::type_error("a scalar has no length");
          return v.dim(0);
        })
      .def("__getitem__", &index_value)
      .def("__iter__",
           [](const Value& v) {
             if (v.rank() == 0) throw py::type_error("a scalar has no entries");
             py::list rows;
             for (std::int64_t i = 0; i < v.dim(0); ++i)
               rows.append(index_value(v, py::int_(i)));
             return py::iter(rows);
           })
      .def(
          "reshape",
          [](const Arg& v, const py::args& shape) {
            return reshape(v, shape_from(shape));
          },
          "The same entries in another shape; one size may be -1.\n\n"
          ">>> bt.ones((2, 3)).reshape(-1).shape\n(6,)")
      .def("flatten", [](const Arg& v) { return reshape(v, {-1}); })
      .def("ravel", [](const Arg& v) { return reshape(v, {-1}); })
      .def("transpose", &transposed)
      .def_property_readonly("T", [](const Arg& v) { return transpose(v); })
      .def(
          "squeeze",
          [](const Value& v, const std::optional<std::int64_t>& axis) {
            return squeezed(v, axis);
          },
          py::arg("axis") = py::none())
      .def(
          "astype", [](const Arg& v, DType d) { return astype(v, d); }, py::arg("dtype"))
      .def("copy", [](const Arg& v) { return copy(v); })
      .def(
          "dot", [](const Arg& a, const Arg& b) { return dot(a, b); }, py::arg("other"));
}

void def_reductions(py::class_<Value>& c) {
  for (const auto& [name, f] : reductions())
    c.def(
        name,
        [f = f](const Arg& v, const py::object& axis, bool keepdims) {
          return f(v, reduce_options(axis, keepdims));
        },
        py::arg("axis") = py::none(), py::arg("keepdims") = false);
  c.def(
       "argmax", [](const Arg& v, std::int64_t axis) { return argmax(v, axis); },
       py::arg("axis") = -1)
      .def(
          "cumsum", [](const Arg& v, std::int64_t axis) { return cumsum(v, axis); },
          py::arg("axis") = -1)
      .def(
          "clip", [](const Arg& v, Arg low, Arg high) { return clamp(v, low, high); },
          py::arg("min"), py::arg("max"));
}

}  // namespace

void init_value_methods(py::module_& m) {
  auto c = py::reinterpret_borrow<py::class_<Value>>(m.attr("Value"));
  def_operators(c);
  def_shape_methods(c);
  def_reductions(c);
}

}  // namespace braintrace::python
