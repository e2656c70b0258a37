// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include "convert.h"
#include "value_object.h"

namespace braintrace::python {
namespace {

// A list of numbers is data; a list that holds an array is a tree.
bool holds_arrays(py::handle list) {
  for (py::handle item : list)
    if (value_in(item) != nullptr || py::hasattr(item, "shape") ||
        py::isinstance<py::dict>(item) || py::isinstance<py::tuple>(item))
      return true;
  return false;
}

// Python's own limit, which a dict that holds itself reaches.
struct Level {
  Level() {
    if (Py_EnterRecursiveCall(" in nested data") != 0) throw py::error_already_set();
  }
  ~Level() { Py_LeaveRecursiveCall(); }
  Level(const Level&) = delete;
};

Tree flatten_items(Tree::Kind kind, py::handle items, std::vector<Value>& leaves) {
  const Level level;
  Tree t{.kind = kind};
  for (py::handle item : items) t.children.push_back(flatten(item, leaves));
  return t;
}

}  // namespace

std::size_t Tree::num_leaves() const {
  if (kind == Kind::leaf) return 1;
  std::size_t n = 0;
  for (const Tree& c : children) n += c.num_leaves();
  return n;
}

Tree flatten(py::handle h, std::vector<Value>& leaves) {
  if (h.is_none()) return {.kind = Tree::Kind::none};
  if (py::isinstance<py::tuple>(h)) return flatten_items(Tree::Kind::tuple, h, leaves);
  if (py::isinstance<py::list>(h) && holds_arrays(h))
    return flatten_items(Tree::Kind::list, h, leaves);
  if (!py::isinstance<py::dict>(h)) {
    leaves.push_back(to_value(h));
    return {};
  }
  const Level level;
  Tree t{.kind = Tree::Kind::dict};
  for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(h)) {
    t.keys.push_back(py::reinterpret_borrow<py::object>(key));
    t.children.push_back(flatten(item, leaves));
  }
  return t;
}

py::object unflatten(const Tree& t, const std::vector<Value>& leaves, std::size_t& next) {
  if (t.kind == Tree::Kind::none) return py::none();
  if (t.kind == Tree::Kind::leaf) return value_object(leaves.at(next++));
  if (t.kind == Tree::Kind::dict) {
    py::dict d;
    for (std::size_t i = 0; i < t.keys.size(); ++i)
      d[t.keys[i]] = unflatten(t.children[i], leaves, next);
    return d;
  }
  py::list items;
  for (const Tree& c : t.children) items.append(unflatten(c, leaves, next));
  if (t.kind == Tree::Kind::list) return items;
  return py::tuple(items);
}

py::object unflatten(const Tree& t, const std::vector<Value>& leaves) {
  std::size_t next = 0;
  return unflatten(t, leaves, next);
}

bool same_structure(const Tree& a, const Tree& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size()) return false;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (!same_structure(a.children[i], b.children[i])) return false;
    if (a.kind == Tree::Kind::dict && !a.keys[i].equal(b.keys[i])) return false;
  }
  return true;
}

}  // namespace braintrace::python
