// SPDX-License-Identifier: Apache-2.0
#include "step_room.h"

#include "convert.h"
#include "value_object.h"

namespace braintrace::python {

bool StepRoom::take(const py::tuple& args) {
  const std::size_t count = args.size();
  arrays_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const py::handle h = PyTuple_GET_ITEM(args.ptr(), static_cast<py::ssize_t>(i));
    if (const Value* v = value_in(h); v != nullptr && v->is_concrete()) {
      arrays_[i] = v->array();
      lent_.push_back(i);
    } else if (!copy_numpy(h, arrays_[i])) {
      give_back();
      return false;
    }
  }
  return true;
}

void StepRoom::give_back() {
  for (std::size_t i : lent_) const Array gone = std::move(arrays_[i]);
  lent_.clear();
}

}  // namespace braintrace::python
