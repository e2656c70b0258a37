// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <algorithm>
#include <set>

#include "value_object.h"
#include <fmt/format.h>
#include <pybind11/numpy.h>

namespace braintrace::python {
namespace {

DType& default_float_setting() {
  static DType d = DType::f32;
  return d;
}

bool& wide_floats() {
  static thread_local bool wide = false;
  return wide;
}

DType float_read() { return wide_floats() ? DType::f64 : default_float(); }

const char* numpy_name(DType d) {
  switch (d) {
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::i32:
      return "int32";
    case DType::boolean:
      return "bool";
    default:
      return nullptr;
  }
}

// What numbers of a NumPy type are read as; `exact`: they are the same bytes.
struct NumpyType {
  std::optional<DType> dtype = {};
  bool exact = false;
};

// By NumPy's numbers for types: NumPy 2 keeps sizes where pybind11 before 2.12 does not
// look for them.
NumpyType dtype_of_numpy(const py::dtype& d) {
  constexpr int kInt = 5, kFloat = 11, kDouble = 12, kHalf = 23;
  const char kind = d.kind();
  const int type = d.num();
  const bool native = d.byteorder() != '>';
  if (type == kDouble) return {DType::f64, native};
  if (type == kFloat) return {DType::f32, native};
  if (type == kHalf) return {DType::f32, false};
  if (kind == 'i' || kind == 'u') return {DType::i32, native && type == kInt};
  if (kind == 'b') return {DType::boolean, true};
  return {};
}

void require_fits(const py::array& a) {
  if (a.size() == 0) return;
  const std::string kind(1, a.dtype().kind());
  if (kind != "i" && kind != "u") return;
  const std::string low = py::str(a.attr("min")()), high = py::str(a.attr("max")());
  const bool fits = a.attr("min")().attr("__ge__")(-2147483648LL).cast<bool>() &&
                    a.attr("max")().attr("__le__")(2147483647LL).cast<bool>();
  BT_REQUIRE(fits,
             fmt::format("array: integers are 32 bits wide; found values from {} to {}",
                         low, high));
}

bool is_packed(const py::array& a) { return (a.flags() & py::array::c_style) != 0; }

Shape shape_of(const py::array& a) { return Shape(a.shape(), a.shape() + a.ndim()); }

// Shares packed memory that nobody can write; nullopt when a copy is needed.
std::optional<Array> borrow(const py::array& a, DType dtype) {
  if (a.writeable() || !is_packed(a)) return std::nullopt;
  return foreign_array(dtype, shape_of(a), a.data(), keep(a));
}

// Packed numbers into an array of their shape. Floats of the other width become what
// NumPy's astype makes of them, without asking NumPy.
void write_numbers(const py::array& a, DType have, Array& out) {
  if (have == out.dtype()) {
    std::memcpy(out.mutable_raw(), a.data(), out.num_bytes());
    return;
  }
  const auto convert = [&]<class From, class To>(const From* from, To* to) {
    std::transform(from, from + a.size(), to, [](From x) { return static_cast<To>(x); });
  };
  BT_INVARIANT(is_float(have) && is_float(out.dtype()));
  if (have == DType::f64)
    convert(static_cast<const double*>(a.data()), static_cast<float*>(out.mutable_raw()));
  else
    convert(static_cast<const float*>(a.data()), static_cast<double*>(out.mutable_raw()));
}

Array copy_of(py::array a, DType have, DType want) {
  if (!is_packed(a)) a = py::array::ensure(a, py::array::c_style);
  Array out = Array::uninitialized(want, shape_of(a));
  write_numbers(a, have, out);
  return out;
}

py::array as_numpy(py::handle h) {
  py::array a = py::array::ensure(h);
  if (!a) {
    PyErr_Clear();
    throw UserError(ErrorKind::type,
                    fmt::format("expected an array or numbers, got {}",
                                py::str(py::type::of(h)).cast<std::string>()));
  }
  return a;
}

Array import(py::handle h, bool keep_width) {
  if (const Value* v = value_in(h)) return v->array();
  const py::array a = as_numpy(h);
  const NumpyType type = dtype_of_numpy(a.dtype());
  if (!type.dtype)
    throw UserError(ErrorKind::type,
                    fmt::format("arrays of {} are not supported; there are float32, "
                                "float64, int32 and bool",
                                py::str(a.dtype()).cast<std::string>()));
  DType want = *type.dtype;
  if (is_float(want) && !keep_width) want = float_read();
  if (!type.exact && want == DType::i32) require_fits(a);
  if (type.exact && want == *type.dtype) {
    if (auto shared = borrow(a, want)) return *shared;
    return copy_of(a, want, want);
  }
  if (type.exact && is_packed(a) && is_float(want)) return copy_of(a, *type.dtype, want);
  return copy_of(a.attr("astype")(numpy_name(want), py::arg("copy") = false), want, want);
}

}  // namespace

Array foreign_array(DType dtype, Shape shape, const void* memory,
                    std::shared_ptr<void> owner) {
  // A second holder of each owner, so that no executor takes the array for its own and
  // writes to it. Dropped at a later call, once the library has let go.
  static auto* holders = new std::vector<std::shared_ptr<void>>();
  std::erase_if(*holders, [](const auto& o) { return o.use_count() == 1; });
  holders->push_back(owner);
  return Array::borrowed(dtype, std::move(shape), const_cast<void*>(memory),
                         std::move(owner));
}

DType default_float() { return default_float_setting(); }

void set_default_float(DType d) {
  BT_REQUIRE_KIND(
      is_float(d), ErrorKind::type,
      fmt::format("set_default_dtype: must be f32 or f64, got {}", to_string(d)));
  default_float_setting() = d;
}

FloatsAs::FloatsAs(DType d) : before_(wide_floats()) {
  wide_floats() = before_ || d == DType::f64;
}
FloatsAs::~FloatsAs() { wide_floats() = before_; }

Array to_array(py::handle h) { return import(h, false); }
Array to_array_exact(py::handle h) { return import(h, true); }

bool copy_numpy(py::handle h, Array& place) {
  if (!py::isinstance<py::array>(h)) return false;
  const auto a = py::reinterpret_borrow<py::array>(h);
  const NumpyType type = dtype_of_numpy(a.dtype());
  if (!type.exact || !is_packed(a) || !a.writeable()) return false;
  const DType want = is_float(*type.dtype) ? float_read() : *type.dtype;
  const Shape& now = place.shape();
  const bool fits = place.is_unique() && place.dtype() == want &&
                    std::equal(a.shape(), a.shape() + a.ndim(), now.begin(), now.end());
  if (!fits) place = Array::uninitialized(want, shape_of(a));
  write_numbers(a, *type.dtype, place);
  return true;
}

Value to_value(py::handle h) {
  if (const Value* v = value_in(h)) return *v;
  return to_array(h);
}

std::optional<Arg> to_arg(py::handle h) {
  std::optional<Arg> out;
  if (const Value* v = value_in(h)) {
    out.emplace(*v);
  } else if (PyBool_Check(h.ptr())) {
    out.emplace(Array::from<bool>({}, {h.cast<bool>()}));
  } else if (PyFloat_CheckExact(h.ptr())) {
    out.emplace(h.cast<double>());
  } else if (PyLong_CheckExact(h.ptr())) {
    int overflow = 0;
    const long v = PyLong_AsLongAndOverflow(h.ptr(), &overflow);
    if (overflow != 0 || v != static_cast<int>(v)) {
      out.emplace(h.cast<double>());
    } else {
      out.emplace(static_cast<int>(v));
    }
  } else if (h.is_none() || PyUnicode_Check(h.ptr()) || PyDict_Check(h.ptr())) {
    return std::nullopt;
  } else {
    out.emplace(to_array(h));
  }
  out->loc = python_location();
  return out;
}

namespace {

std::optional<std::int64_t> integer_from(py::handle h) {
  if (!PyIndex_Check(h.ptr())) return std::nullopt;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(h.ptr()));
  const long long v = index ? PyLong_AsLongLong(index.ptr()) : -1;
  if (!PyErr_Occurred()) return v;
  PyErr_Clear();
  return std::nullopt;
}

}  // namespace

std::optional<Shape> shape_from(py::handle h) {
  if (const auto one = integer_from(h)) return Shape{*one};
  if (!py::isinstance<py::sequence>(h) || PyUnicode_Check(h.ptr())) return std::nullopt;
  Shape out;
  for (py::handle item : py::reinterpret_borrow<py::sequence>(h)) {
    const auto v = integer_from(item);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

Shape to_shape(py::handle h) {
  std::optional<Shape> s = shape_from(h);
  if (!s)
    throw UserError(ErrorKind::type,
                    fmt::format("expected an integer or a sequence of integers, got {}",
                                py::repr(h).cast<std::string>()));
  return *s;
}

namespace {

NumpyType type_from(py::handle h) {
  if (PyUnicode_Check(h.ptr()))
    if (const auto d = dtype_from_string(h.cast<std::string>())) return {d, true};
  try {
    const auto o = py::reinterpret_borrow<py::object>(h);
    return dtype_of_numpy(py::dtype::from_args(o));
  } catch (const py::error_already_set&) {
    return {};
  }
}

std::optional<DType> dtype_from(py::handle h) { return type_from(h).dtype; }

}  // namespace

std::optional<DType> exact_dtype(py::handle h) {
  const NumpyType type = type_from(h);
  return type.exact ? type.dtype : std::nullopt;
}

DType to_dtype(py::handle h) {
  const std::optional<DType> d = dtype_from(h);
  if (!d)
    throw UserError(ErrorKind::type,
                    fmt::format("no element type {}; there are f32, f64, i32 and bool",
                                py::repr(h).cast<std::string>()));
  return *d;
}

py::object dtype_object(DType d) {
  if (const char* name = numpy_name(d))
    return py::module_::import("numpy").attr("dtype")(name);
  return py::str(std::string(to_string(d)));
}

py::object numpy_view(const Array& a) {
  const char* name = numpy_name(a.dtype());
  if (name == nullptr) return numpy_view(a.astype(DType::f32));
  Ints strides = a.strides();
  for (std::int64_t& s : strides) s *= static_cast<std::int64_t>(size_of(a.dtype()));
  py::capsule base(new Array(a), [](void* p) { delete static_cast<Array*>(p); });
  py::array view(py::dtype(name), a.shape(), strides, a.raw(), base);
  view.attr("setflags")(py::arg("write") = false);
  return view;
}

SourceLoc python_location() {
  static auto* names = new std::set<std::string>();  // SourceLoc keeps pointers
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) return {};
  PyCodeObject* code = PyFrame_GetCode(frame);
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  SourceLoc loc;
  if (file != nullptr) {
    loc = {names->insert(file).first->c_str(),
           static_cast<std::uint32_t>(PyFrame_GetLineNumber(frame))};
  } else {
    PyErr_Clear();
  }
  Py_DECREF(code);
  return loc;
}

std::shared_ptr<py::object> keep(py::object o) {
  return {new py::object(std::move(o)), [](py::object* p) {
            py::gil_scoped_acquire gil;
            delete p;
          }};
}

py::tuple to_tuple(const Shape& s) {
  py::tuple t(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) t[i] = py::int_(s[i]);
  return t;
}

}  // namespace braintrace::python

namespace pybind11::detail {

using namespace braintrace;
using namespace braintrace::python;

bool type_caster<Array>::load(handle h, bool) {
  if (h.is_none()) return false;
  value = to_array(h);
  return true;
}

handle type_caster<Array>::cast(const Array& a, return_value_policy, handle) {
  return value_object(a).release();
}

bool type_caster<DType>::load(handle h, bool) {
  if (h.is_none()) return false;
  value = to_dtype(h);
  return true;
}

handle type_caster<DType>::cast(DType d, return_value_policy, handle) {
  return dtype_object(d).release();
}

bool type_caster<Size>::load(handle h, bool) {
  std::optional<Shape> s = shape_from(h);
  if (s) value.dims = std::move(*s);
  return s.has_value();
}

bool type_caster<FileName>::load(handle h, bool) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(h.ptr(), &bytes) == 0) {
    PyErr_Clear();  // the caller says what is taken
    return false;
  }
  value.bytes = reinterpret_steal<py::bytes>(bytes);
  return true;
}

bool type_caster<Path>::load(handle h, bool) {
  value.keys.clear();
  if (PyUnicode_Check(h.ptr())) {
    value = path_from_slashes(h.cast<std::string>());
    return true;
  }
  if (!isinstance<sequence>(h)) return false;
  for (handle key : reinterpret_borrow<sequence>(h)) {
    if (PyLong_Check(key.ptr())) {
      value.keys.emplace_back(key.cast<std::int64_t>());
    } else if (PyUnicode_Check(key.ptr())) {
      value.keys.emplace_back(key.cast<std::string>());
    } else {
      return false;
    }
  }
  return true;
}

handle type_caster<Path>::cast(const Path& p, return_value_policy, handle) {
  tuple t(p.keys.size());
  for (std::size_t i = 0; i < p.keys.size(); ++i)
    t[i] =
        std::visit([](const auto& k) -> object { return pybind11::cast(k); }, p.keys[i]);
  return t.release();
}

bool type_caster<Arg>::load(handle h, bool) {
  value = to_arg(h);
  return value.has_value();
}

}  // namespace pybind11::detail
