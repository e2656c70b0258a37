// SPDX-License-Identifier: Apache-2.0
// The one array type of Python code: a concrete array or a symbolic value of a trace.
// NumPy, the buffer protocol and DLPack see the same memory, read only.
#include "convert.h"
#include "dlpack.h"
#include "value_object.h"
#include <fmt/format.h>

namespace braintrace::python {
namespace {

const char* buffer_format(DType d) {
  switch (d) {
    case DType::boolean:
      return "?";
    case DType::i32:
      return "i";
    case DType::f32:
      return "f";
    case DType::f64:
      return "d";
    default:
      return "H";
  }
}

// What a Py_buffer points into.
struct Exported {
  Array array;
  Ints shape, strides;
};

void fill_buffer(Py_buffer* view, const Array& a, int flags) {
  auto exported = std::make_unique<Exported>();
  const bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  exported->array = strided ? a : a.contiguous();
  const Array& array = exported->array;
  exported->shape = array.shape();
  exported->strides = array.strides();
  const auto width = static_cast<std::int64_t>(size_of(a.dtype()));
  for (std::int64_t& s : exported->strides) s *= width;
  view->buf = const_cast<void*>(array.raw());
  view->len = static_cast<Py_ssize_t>(array.num_bytes());
  view->itemsize = width;
  view->readonly = 1;
  view->ndim = static_cast<int>(array.rank());
  view->format =
      (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(buffer_format(a.dtype())) : nullptr;
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  view->shape = reinterpret_cast<Py_ssize_t*>(exported->shape.data());
  view->strides = reinterpret_cast<Py_ssize_t*>(exported->strides.data());
  view->suboffsets = nullptr;
  view->internal = exported.release();
}

// pybind11's own buffer support cannot refuse, and symbolic values must.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    if ((flags & PyBUF_WRITABLE) != 0) {
      PyErr_SetString(PyExc_BufferError, "a Value cannot be written to");
      return -1;
    }
    fill_buffer(view, py::handle(self).cast<const Value&>().array(), flags);
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_BufferError, e.what());
    return -1;
  }
  view->obj = self;
  Py_INCREF(self);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<Exported*>(view->internal);
}

void set_up_type(PyHeapTypeObject* type) {
  type->ht_type.tp_as_buffer = &type->as_buffer;
  type->as_buffer.bf_getbuffer = get_buffer;
  type->as_buffer.bf_releasebuffer = release_buffer;
  set_up_dealloc(type->ht_type);
}

Value make_value(const py::object& data, const std::optional<DType>& dtype) {
  if (!dtype) return to_value(data);
  if (const Value* v = value_in(data)) return astype(*v, *dtype);
  return to_array_exact(data).astype(*dtype);
}

std::string value_repr(const Value& v) {
  if (!v.is_concrete())
    return fmt::format("Value(%{}: {})", v.id().index, to_string(v.type()));
  const py::object text = py::module_::import("numpy").attr("array2string")(
      numpy_view(v.array()), py::arg("separator") = ", ", py::arg("prefix") = "Value(");
  return fmt::format("Value({}, dtype={})", text.cast<std::string>(),
                     to_string(v.dtype()));
}

py::object as_numpy_of(const Value& v, const py::object& dtype) {
  const py::object view = numpy_view(v.array());
  if (dtype.is_none()) return view;
  return view.attr("astype")(dtype, py::arg("copy") = false);
}

}  // namespace

void init_value(py::module_& m) {
  py::class_<Value> value(
      m, "Value", py::custom_type_setup(set_up_type),
      R"(A concrete array, or a symbolic value while a model is traced.

>>> v = bt.Value([1, 2.5])
>>> v.shape, str(v.dtype)
((2,), 'float32')
>>> (v + 1).tolist()
[2.0, 3.5])");
  value.def(py::init(&make_value), py::arg("data"), py::arg("dtype") = py::none())
      .def_property_readonly("shape", [](const Value& v) { return to_tuple(v.shape()); })
      .def_property_readonly("dtype", [](const Value& v) { return v.dtype(); })
      .def_property_readonly("ndim", &Value::rank)
      .def_property_readonly("size", [](const Value& v) { return v.type().size(); })
      .def_property_readonly("is_concrete", &Value::is_concrete)
      .def(
          "numpy", [](const Value& v) { return numpy_view(v.array()); },
          "A read-only NumPy view; no copy.\n\n>>> bt.ones(2).numpy()\n"
          "array([1., 1.], dtype=float32)")
      .def("__array__", &as_numpy_of, py::arg("dtype") = py::none())
      .def("tolist",
           [](const Value& v) { return numpy_view(v.array()).attr("tolist")(); })
      .def("item", [](const Value& v) { return numpy_view(v.array()).attr("item")(); })
      .def("__float__", [](const Value& v) { return v.array().item(); })
      .def("__int__",
           [](const Value& v) { return static_cast<std::int64_t>(v.array().item()); })
      .def("__index__",
           [](const Value& v) {
             if (v.dtype() != DType::i32) throw py::type_error("only integers can index");
             return static_cast<std::int64_t>(v.array().item());
           })
      .def("__bool__", [](const Value& v) { return v.array().item() != 0; })
      .def("__repr__", &value_repr)
      .def(
          "__dlpack__",
          [](const Value& v, const py::object&) { return to_dlpack(v.array()); },
          py::arg("stream") = py::none())
      .def("__dlpack_device__", [](const Value&) { return py::make_tuple(1, 0); })
      .def("__reduce__", [](const py::object& self) {
        const Value& v = self.cast<const Value&>();
        return py::make_tuple(
            py::type::of(self),
            py::make_tuple(numpy_view(v.array()), std::string(to_string(v.dtype()))));
      });
  value.attr("__hash__") = py::none();

  m.def("from_dlpack", &from_dlpack, py::arg("x"),
        "A Value on the memory of any DLPack exporter; no copy.\n\n"
        ">>> import numpy as np\n>>> bt.from_dlpack(np.ones(2, 'float32')).tolist()\n"
        "[1.0, 1.0]");
  m.def("set_default_dtype", &set_default_float, py::arg("dtype"),
        "The type floats that come from Python or NumPy take: f32 (default) or f64.\n\n"
        ">>> bt.set_default_dtype('f32')");
  m.def("default_dtype", &default_float,
        "See set_default_dtype.\n\n"
        ">>> str(bt.default_dtype())\n'float32'");
}

}  // namespace braintrace::python
