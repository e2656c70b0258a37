// SPDX-License-Identifier: Apache-2.0
#include "reader.h"

#include <algorithm>
#include <cmath>

#include "convert.h"
#include "py_module.h"
#include <fmt/format.h>

#include "braintrace/nn/initializers.h"

namespace braintrace::python {

Reader::Reader(std::string who, py::args args, py::kwargs kwargs)
    : who_(std::move(who)), args_(std::move(args)), kwargs_(std::move(kwargs)) {}

Reader::Reader(std::string who) : who_(std::move(who)), describing_(true) {}

std::optional<py::object> Reader::next(const char* name,
                                       const std::string& default_text) {
  const std::string item =
      default_text.empty() ? name : fmt::format("{}={}", name, default_text);
  signature_ += (signature_.empty() ? "" : ", ") + item;
  if (describing_) return std::nullopt;
  const bool by_name = kwargs_.contains(name);
  if (position_ < args_.size()) {
    if (by_name)
      throw UserError(ErrorKind::type,
                      fmt::format("{}() got multiple values for '{}'", who_, name));
    return args_[position_++];
  }
  if (!by_name) return std::nullopt;
  ++named_;
  return kwargs_[name];
}

py::object Reader::required(const char* name) {
  const auto o = next(name, "");
  if (o) return *o;
  if (describing_) return py::none();
  throw UserError(ErrorKind::type,
                  fmt::format("{}() is missing its argument '{}'", who_, name));
}

void Reader::refuse(const char* name, const char* wanted, py::handle found,
                    ErrorKind kind) const {
  throw UserError(kind, fmt::format("{}: {} must be {}, got {}", who_, name, wanted,
                                    py::repr(found).cast<std::string>()));
}

template <class T>
T Reader::as(const char* name, const char* wanted, const py::object& o) const {
  py::detail::make_caster<T> caster;
  // Converted, everything is true or false.
  if (!caster.load(o, !std::is_same_v<T, bool>)) refuse(name, wanted, o);
  return py::detail::cast_op<T>(std::move(caster));
}

template <class F>
auto Reader::named(const char* name, const F& f) const {
  try {
    return f();
  } catch (const UserError& e) {
    throw UserError(e.kind(), fmt::format("{}: {}: {}", who_, name, e.what()));
  }
}

double Reader::number(const char* name, const char* wanted, const py::object& o) const {
  const auto v = as<double>(name, wanted, o);
  if (std::isnan(v)) refuse(name, wanted, o, ErrorKind::value);
  return v;
}

Array Reader::finite_array(const char* name, const char* wanted,
                           const py::object& o) const {
  std::optional<Array> a;
  try {
    a = to_array_exact(o);
  } catch (const UserError&) {
    refuse(name, wanted, o);
  }
  for (const double v : a->to_doubles())
    if (!std::isfinite(v)) refuse(name, "finite", o, ErrorKind::value);
  return *a;
}

Shape Reader::integers(const char* name, const py::object& o) const {
  std::optional<Shape> s = shape_from(o);
  if (!s) refuse(name, "an integer or a sequence of integers", o);
  return *s;
}

Shape Reader::sizes(const char* name, const py::object& o) const {
  const Shape s = integers(name, o);
  if (std::any_of(s.begin(), s.end(), [](std::int64_t n) { return n < 0; }))
    refuse(name, ">= 0", o, ErrorKind::value);
  return s;
}

std::int64_t Reader::integer(const char* name) {
  const py::object o = required(name);
  if (describing_) return 1;
  const Shape s = sizes(name, o);
  if (s.size() != 1) refuse(name, "one integer", o);
  return s[0];
}

double Reader::real(const char* name) {
  const py::object o = required(name);
  return describing_ ? 0 : number(name, "a number", o);
}

Shape Reader::shape(const char* name) {
  const py::object o = required(name);
  return describing_ ? Shape{1} : sizes(name, o);
}

py::object Reader::object(const char* name) { return required(name); }

Module* Reader::module(const char* name) {
  const py::object o = required(name);
  if (describing_) return nullptr;
  const std::shared_ptr<Module> m = named(name, [&] { return module_of(o); });
  kept_.push_back(m);
  return m.get();
}

std::pair<py::tuple, py::dict> Reader::rest(const char* name) {
  signature_ += fmt::format("{}*{}, **named", signature_.empty() ? "" : ", ", name);
  if (describing_) return {py::tuple(), py::dict()};
  const py::tuple left = args_[py::slice(position_, args_.size(), 1)];
  position_ = args_.size();
  named_ = kwargs_.size();
  return {left, kwargs_};
}

void Reader::take(const char* name, double& field) {
  if (const auto o = next(name, fmt::format("{}", field)))
    field = number(name, "a number", *o);
}

void Reader::take(const char* name, bool& field) {
  if (const auto o = next(name, field ? "True" : "False"))
    field = as<bool>(name, "True or False", *o);
}

void Reader::take(const char* name, std::int64_t& field) {
  if (const auto o = next(name, fmt::format("{}", field)))
    field = as<std::int64_t>(name, "an integer", *o);
}

void Reader::take(const char* name, std::string& field) {
  if (const auto o = next(name, fmt::format("'{}'", field)))
    field = as<std::string>(name, "a name", *o);
}

void Reader::take(const char* name, Ints& field) {
  const std::string text = py::repr(to_tuple(field));
  if (const auto o = next(name, text)) field = integers(name, *o);
}

void Reader::take(const char* name, std::optional<std::int64_t>& field) {
  if (const auto o = next(name, "None"))
    field = as<std::optional<std::int64_t>>(name, "an integer or None", *o);
}

void Reader::take(const char* name, std::optional<double>& field) {
  const auto o = next(name, "None");
  if (!o) return;
  field.reset();
  if (!o->is_none()) field = number(name, "a number or None", *o);
}

void Reader::take(const char* name, std::optional<Array>& field) {
  const auto o = next(name, "None");
  if (o && !o->is_none()) field = finite_array(name, "numbers or None", *o);
}

Initializer Reader::initializer(const char* name, const py::object& o) const {
  const char* wanted = "numbers, an initialiser or a function (key, shape, dtype)";
  if (py::isinstance<NamedInitializer>(o)) return to_initializer(o);
  const bool is_class = PyType_Check(o.ptr()) != 0;
  if (o.is_none() || is_class || is_module(o)) refuse(name, wanted, o);
  if (PyCallable_Check(o.ptr()) != 0) return to_initializer(o);
  return nn::init::given(finite_array(name, wanted, o));
}

void Reader::take(const char* name, Initializer& field) {
  if (const auto o = next(name, "...")) field = initializer(name, *o);
}

void Reader::take_or_none(const char* name, Initializer& field) {
  const auto o = next(name, field ? "..." : "None");
  if (o) field = o->is_none() ? Initializer{} : initializer(name, *o);
}

void Reader::take(const char* name, nn::Activation& field) {
  const auto o = next(name, "...");
  if (!o) return;
  if (py::isinstance<py::str>(*o)) {
    field = named(name, [&] { return nn::Activation(o->cast<std::string>()); });
    return;
  }
  const bool is_class = PyType_Check(o->ptr()) != 0;  // its call makes a layer
  if (is_class || PyCallable_Check(o->ptr()) == 0)
    refuse(name, "the name of an activation or a function of one value", *o);
  field =
      nn::Activation([held = keep(*o)](const Value& x) { return to_value((*held)(x)); });
}

void Reader::take(const char* name, nn::Coefficient& field) {
  const std::string text =
      field.is_scalar() ? fmt::format("{}", field.values().item()) : "...";
  const auto o = next(name, text);
  if (!o) return;
  if (PyFloat_Check(o->ptr()) || PyLong_Check(o->ptr()))
    field = o->cast<double>();
  else
    field = nn::Coefficient(finite_array(name, "a number, or one per unit", *o));
}

void Reader::take(const char* name, nn::Surrogate& field) {
  const auto o = next(name, field.to_string());
  if (!o) return;
  if (py::isinstance<py::str>(*o)) {
    field = named(name, [&] { return nn::Surrogate(o->cast<std::string>()); });
  } else {
    field = as<nn::Surrogate>(name, "a surrogate or its name", *o);
  }
}

void Reader::take(const char* name, nn::PerAxis& field) {
  const py::object shown = field.values.size() == 1
                               ? py::object(py::int_(field.values[0]))
                               : py::object(to_tuple(field.values));
  if (const auto o = next(name, py::repr(shown))) field = nn::PerAxis(integers(name, *o));
}

void Reader::take(const char* name, nn::Padding& field) {
  const auto o = next(name, fmt::format("'{}'", field.mode));
  if (!o) return;
  if (py::isinstance<py::str>(*o)) {
    field = nn::Padding(o->cast<std::string>());
  } else if (py::isinstance<py::int_>(*o)) {
    field = nn::Padding(o->cast<int>());
  } else if (const auto each = shape_from(*o); each && !each->empty()) {
    field = nn::Padding(*each);
  } else {
    field = nn::Padding(
        as<nn::Padding::Pairs>(name, "a name, a number or pairs of numbers", *o));
  }
}

void Reader::take(const char* name, std::shared_ptr<Module>& field) {
  const auto o = next(name, "None");
  if (o && !o->is_none()) field = named(name, [&] { return module_of(*o); });
}

void Reader::take(const char* name, py::object& field) {
  if (const auto o = next(name, "None")) field = *o;
}

void Reader::done() {
  if (describing_) throw Described{"(" + signature_ + ")"};
  if (position_ < args_.size())
    throw UserError(ErrorKind::type,
                    fmt::format("{}({}) got {} positional arguments too many", who_,
                                signature_, args_.size() - position_));
  if (named_ == kwargs_.size()) return;
  const std::string known = ", " + signature_ + ",";
  for (const auto& [key, value] : kwargs_) {
    const auto name = key.cast<std::string>();
    if (known.find(", " + name + "=") == known.npos &&
        known.find(", " + name + ",") == known.npos)
      throw UserError(
          ErrorKind::type,
          fmt::format("{}() has no argument '{}'; there are {}", who_, name, signature_));
  }
}

Initializer to_initializer(py::handle h) {
  if (py::isinstance<NamedInitializer>(h)) return h.cast<const NamedInitializer&>().f;
  if (!PyCallable_Check(h.ptr())) return nn::init::given(to_array_exact(h));
  const auto held = keep(py::reinterpret_borrow<py::object>(h));
  return [held](RngKey key, const Shape& shape, DType dtype) {
    py::gil_scoped_acquire gil;
    const py::object out = (*held)(key_array(key), to_tuple(shape), dtype);
    return to_array_exact(out).astype(dtype);
  };
}

}  // namespace braintrace::python
