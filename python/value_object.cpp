// SPDX-License-Identifier: Apache-2.0
#include "value_object.h"

namespace braintrace::python {
namespace {

const py::detail::type_info& value_type() {
  static const py::detail::type_info* info =
      py::detail::get_type_info(typeid(Value), /*throw_if_missing=*/true);
  return *info;
}

}  // namespace

const Value* value_in(py::handle h) {
  const py::detail::type_info& type = value_type();
  if (Py_TYPE(h.ptr()) == type.type) {
    auto* made = reinterpret_cast<py::detail::instance*>(h.ptr());
    return made->get_value_and_holder().value_ptr<Value>();
  }
  if (PyType_IsSubtype(Py_TYPE(h.ptr()), type.type) == 0) return nullptr;
  return &h.cast<const Value&>();
}

namespace {

using Holder = std::unique_ptr<Value>;

// What pybind11's instance is for a type with one C++ base and a small holder, made and
// ended by hand. pybind11 itself asks a table for the layout, and enters the object in
// another one to find it again when C++ returns a reference to the same Value; nothing
// here returns one.
py::detail::instance* bare_object() {
  PyTypeObject* type = value_type().type;
  auto* made = reinterpret_cast<py::detail::instance*>(type->tp_alloc(type, 0));
  if (made == nullptr) throw py::error_already_set();
  made->simple_layout = true;
  made->owned = true;
  return made;
}

bool is_bare(PyObject* self) {
  if (Py_TYPE(self) != value_type().type) return false;
  const auto* made = reinterpret_cast<py::detail::instance*>(self);
  return made->simple_layout && made->simple_holder_constructed &&
         !made->simple_instance_registered && !made->has_patients &&
         made->weakrefs == nullptr;
}

void dealloc(PyObject* self) {
  if (!is_bare(self)) {
    const auto* base =
        reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
    return base->tp_dealloc(self);
  }
  {
    const py::error_scope kept;  // memory of other owners may end in Python code
    reinterpret_cast<py::detail::instance*>(self)
        ->get_value_and_holder()
        .holder<Holder>()
        .~Holder();
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

py::object value_object(Value v) {
  static_assert(sizeof(Holder) <=
                py::detail::instance_simple_holder_in_ptrs() * sizeof(void*));
  auto held = std::make_unique<Value>(std::move(v));
  py::detail::instance* made = bare_object();
  py::detail::value_and_holder place = made->get_value_and_holder();
  place.value_ptr<Value>() = held.get();
  new (&place.holder<Holder>()) Holder(std::move(held));
  place.set_holder_constructed();
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(made));
}

void set_up_dealloc(PyTypeObject& type) { type.tp_dealloc = dealloc; }

}  // namespace braintrace::python
