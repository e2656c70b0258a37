// SPDX-License-Identifier: Apache-2.0
#pragma once
// Room for the arguments of one step, kept from call to call: NumPy's numbers are copied
// into the same memory every time. For who holds the learner's claim and the GIL.
#include "bindings.h"

namespace braintrace::python {

class StepRoom {
 public:
  // True when each argument is a concrete Value or a NumPy array that copy_numpy takes:
  // they are in `arrays` then. No Python code runs.
  bool take(const py::tuple& args);
  const std::vector<Array>& arrays() const { return arrays_; }
  // Lets go of arrays that belong to the caller.
  void give_back();

 private:
  std::vector<Array> arrays_;
  std::vector<std::size_t> lent_;  // those of Values
};

}  // namespace braintrace::python
