// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python objects to library values and back.
//   Array, Value   anything array-like; floats become the default float type (FloatsAs)
//                  unless they are Values already, 64-bit integers become i32
//   Arg            the same; a bare number is weak: it takes the type of what it meets
//   Size           an int or a sequence of ints
//   Path           a tuple of names and list positions
//   DType          'f32', 'float32', numpy.float32, ...
//   FileName       a str, bytes or os.PathLike without a zero byte
#include <optional>

#include "bindings.h"

#include "braintrace/model/path.h"
#include "braintrace/ops/ops.h"

namespace braintrace::python {

struct Size {
  Shape dims;
  operator const Shape&() const { return dims; }  // NOLINT
};

struct FileName {
  std::string bytes;  // as the system takes it
};

DType default_float();
void set_default_float(DType d);  // UserError unless f32 or f64

// While it lives, floats that come in on this thread become f64 if `d` is: what is meant
// for states of that type keeps its digits.
class FloatsAs {
 public:
  explicit FloatsAs(DType d);
  ~FloatsAs();
  FloatsAs(const FloatsAs&) = delete;

 private:
  bool before_;
};

Array to_array(py::handle h);
// The numbers of the object in its own width where we have it (float64 stays f64).
Array to_array_exact(py::handle h);
// Copies a packed, writeable NumPy array of a type we have, to_array's numbers, into
// `place`; its memory is used again when nobody else holds it. False for anything else.
// No Python code runs.
bool copy_numpy(py::handle h, Array& place);
Value to_value(py::handle h);
std::optional<Arg> to_arg(py::handle h);  // nullopt: not array-like
Shape to_shape(py::handle h);
std::optional<Shape> shape_from(py::handle h);  // nullopt: not an int, nor ints
DType to_dtype(py::handle h);
// nullopt for names that are read as another type (int8, float16).
std::optional<DType> exact_dtype(py::handle h);
py::object dtype_object(DType d);  // numpy's; the name for a type numpy lacks

// A packed array on memory that others own and that is never written.
Array foreign_array(DType dtype, Shape shape, const void* memory,
                    std::shared_ptr<void> owner);
// A read-only NumPy view; no copy.
py::object numpy_view(const Array& a);

// The line of Python code that is running.
SourceLoc python_location();

// Keeps a Python object alive from C++; released under the GIL.
std::shared_ptr<py::object> keep(py::object o);

py::tuple to_tuple(const Shape& s);

}  // namespace braintrace::python

namespace pybind11::detail {

template <>
struct type_caster<braintrace::Array> {
  PYBIND11_TYPE_CASTER(braintrace::Array, const_name("Value"));
  bool load(handle h, bool);
  static handle cast(const braintrace::Array& a, return_value_policy, handle);
};

template <>
struct type_caster<braintrace::DType> {
  PYBIND11_TYPE_CASTER(braintrace::DType, const_name("dtype"));
  bool load(handle h, bool);
  static handle cast(braintrace::DType d, return_value_policy, handle);
};

template <>
struct type_caster<braintrace::python::Size> {
  PYBIND11_TYPE_CASTER(braintrace::python::Size, const_name("Size"));
  bool load(handle h, bool);
};

template <>
struct type_caster<braintrace::Path> {
  PYBIND11_TYPE_CASTER(braintrace::Path, const_name("tuple"));
  bool load(handle h, bool);
  static handle cast(const braintrace::Path& p, return_value_policy, handle);
};

template <>
struct type_caster<braintrace::python::FileName> {
  PYBIND11_TYPE_CASTER(braintrace::python::FileName, const_name("braintrace::FileName"));
  bool load(handle h, bool);
};

// Arg has no empty value, so it is held in an optional.
template <>
struct type_caster<braintrace::Arg> {
  static constexpr auto name = const_name("ArrayLike");
  template <class T>
  using cast_op_type = braintrace::Arg&;
  operator braintrace::Arg&() { return *value; }
  bool load(handle h, bool);
  std::optional<braintrace::Arg> value;
};

}  // namespace pybind11::detail
