// SPDX-License-Identifier: Apache-2.0
#pragma once
// May values be written where an array is?
#include "braintrace/array/array.h"

namespace braintrace {

inline bool is_free(const Array& a) { return a.is_unique() && a.is_contiguous(); }

// Those of `b` where `a` is.
inline bool has_room(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && is_free(a);
}

}  // namespace braintrace
