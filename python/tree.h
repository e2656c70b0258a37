// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nested tuples, lists and dicts of array-likes: their leaves in order, and back.
#include <vector>

#include "bindings.h"

namespace braintrace::python {

struct Tree {
  enum class Kind { leaf, none, tuple, list, dict } kind = Kind::leaf;
  std::vector<Tree> children;
  std::vector<py::object> keys;  // of a dict, in its order

  std::size_t num_leaves() const;
};

// Appends the leaves. TypeError for what is no array.
Tree flatten(py::handle h, std::vector<Value>& leaves);
// Takes leaves from `next` on.
py::object unflatten(const Tree& t, const std::vector<Value>& leaves, std::size_t& next);
py::object unflatten(const Tree& t, const std::vector<Value>& leaves);
bool same_structure(const Tree& a, const Tree& b);

}  // namespace braintrace::python
