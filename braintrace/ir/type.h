// SPDX-License-Identifier: Apache-2.0
#pragma once
// The static type of a value: element type and shape.
#include <string>

#include "braintrace/array/array.h"

namespace braintrace {

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t size() const { return num_elements(shape); }
  friend bool operator==(const Type&, const Type&) = default;
};

inline Type type_of(const Array& a) { return {a.dtype(), a.shape()}; }
std::string to_string(const Type& t);  // "f32[2,3]"

}  // namespace braintrace
