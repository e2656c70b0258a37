// SPDX-License-Identifier: Apache-2.0
#pragma once
// Comparing arrays: where they differ most, and a failure that says so.
#include <stdexcept>
#include <string>

#include "braintrace/array/array.h"

namespace braintrace::testing {

class CheckFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The largest |got - want| / max(1, |want|). NaN agrees with NaN, inf with the same inf;
// any other pair with one of them has an infinite error.
struct Worst {
  double error = 0;
  std::int64_t position = 0;  // row-major
  double got = 0, want = 0;
};
Worst worst_error(const Array& got, const Array& want);

// Throws CheckFailure naming `what`, the position and both numbers when the types differ
// or the worst error is above tolerance. Returns the worst error.
double check_close(const std::string& what, const Array& got, const Array& want,
                   double tolerance);

// tol::f64 or tol::f32 by the element type; 0 for integers and booleans.
double value_tolerance(DType dtype);

// Multi-index of a row-major position.
Ints unravel(std::int64_t position, const Shape& shape);

}  // namespace braintrace::testing
