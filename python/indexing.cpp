// SPDX-License-Identifier: Apache-2.0
#include "indexing.h"

#include "convert.h"
#include <fmt/format.h>

namespace braintrace::python {
namespace {

std::vector<py::object> key_items(const Value& x, const py::object& key) {
  std::vector<py::object> items;
  if (py::isinstance<py::tuple>(key)) {
    for (py::handle k : key) items.push_back(py::reinterpret_borrow<py::object>(k));
  } else {
    items.push_back(key);
  }
  const auto is_dots = [](const py::object& o) { return o.ptr() == Py_Ellipsis; };
  std::int64_t used = 0;
  for (const py::object& o : items) used += !is_dots(o) && !o.is_none();
  BT_REQUIRE_KIND(used <= x.rank(), ErrorKind::value,
                  fmt::format("index: {} indices for a value of shape {}", used,
                              to_string(x.shape())));
  const auto all = py::slice(std::nullopt, std::nullopt, std::nullopt);
  auto dots = std::find_if(items.begin(), items.end(), is_dots);
  if (dots == items.end()) dots = items.insert(items.end(), py::ellipsis());
  dots = items.erase(dots);
  items.insert(dots, static_cast<std::size_t>(x.rank() - used), all);
  return items;
}

// What is cut out of each axis, and the shape that is left.
struct Window {
  Ints start, step, flipped;
  Shape size, result;
};

void add_slice(Window& w, const py::object& item, std::int64_t dim, std::int64_t axis) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(item.ptr(), &start, &stop, &step) < 0) throw py::error_already_set();
  const Py_ssize_t n = PySlice_AdjustIndices(dim, &start, &stop, step);
  const bool backwards = step < 0;
  if (backwards) {
    start += (n - 1) * step;
    step = -step;
    w.flipped.push_back(axis);
  }
  w.start.push_back(n == 0 ? 0 : start);
  w.size.push_back(n);
  w.step.push_back(step);
  w.result.push_back(n);
}

void add_integer(Window& w, std::int64_t i, std::int64_t dim, std::int64_t axis) {
  if (i < -dim || i >= dim)
    throw py::index_error(
        fmt::format("index {} is out of range for axis {} of size {}", i, axis, dim));
  w.start.push_back(i < 0 ? i + dim : i);
  w.size.push_back(1);
  w.step.push_back(1);
}

// The value as an argument written on the line of Python that is running.
Arg written_here(const Value& v) {
  Arg a = v;
  a.loc = python_location();
  return a;
}

Value cut(const Value& x, const Window& w) {
  Value y = x;
  if (w.size != x.shape()) y = slice(written_here(y), w.start, w.size, w.step);
  if (!w.flipped.empty()) y = flip(written_here(y), w.flipped);
  return y.shape() == w.result ? y : reshape(written_here(y), w.result);
}

bool is_integer(const py::object& o) {
  return PyIndex_Check(o.ptr()) && !PyBool_Check(o.ptr()) && !py::isinstance<Value>(o) &&
         !py::hasattr(o, "shape");
}

// Takes along the axes indexed by arrays; these then count as whole slices.
Value take_arrays(Value x, std::vector<py::object>& items) {
  const auto all = py::slice(std::nullopt, std::nullopt, std::nullopt);
  std::int64_t axis = 0, arrays = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const py::object item = items[i];
    if (item.is_none()) continue;
    if (!py::isinstance<py::slice>(item) && !is_integer(item)) {
      BT_REQUIRE_KIND(++arrays == 1, ErrorKind::not_implemented,
                      "index: only one index may be an array");
      const Value indices = to_value(item);
      BT_REQUIRE_KIND(indices.dtype() == DType::i32, ErrorKind::type,
                      fmt::format("index: an array index must hold integers, got {}",
                                  to_string(indices.type())));
      x = take(x, indices, axis);
      const auto rank = static_cast<std::size_t>(indices.rank());
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      items.insert(items.begin() + static_cast<std::ptrdiff_t>(i), rank, all);
      axis += indices.rank();
      i += rank;
      --i;  // wraps below zero for a scalar index at the front; ++ brings it back
      continue;
    }
    ++axis;
  }
  return x;
}

}  // namespace

Value index_value(const Value& value, const py::object& key) {
  std::vector<py::object> items = key_items(value, key);
  const Value x = take_arrays(value, items);
  Window w;
  std::int64_t axis = 0;
  for (const py::object& item : items) {
    if (item.is_none()) {
      w.result.push_back(1);
      continue;
    }
    const std::int64_t dim = x.dim(axis);
    if (py::isinstance<py::slice>(item)) {
      add_slice(w, item, dim, axis);
    } else {
      add_integer(w, item.cast<std::int64_t>(), dim, axis);
    }
    ++axis;
  }
  return cut(x, w);
}

Value squeezed(const Value& v, const std::optional<std::int64_t>& axis) {
  if (axis) return squeeze(v, *axis);
  Shape kept = v.shape();
  std::erase(kept, 1);
  return reshape(v, kept);
}

}  // namespace braintrace::python
