// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schedules of Python and of the library.
#include "made.h"

#include "braintrace/train/schedules.h"

namespace braintrace::python {

struct PySchedule {
  Schedule rate;
  Made made;
};

// None (no schedule), a Schedule, or a function of the count. UserError
Schedule to_schedule(const py::object& o);
// The object to_schedule was given.
py::object schedule_object(const Schedule& s);

}  // namespace braintrace::python
