// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program of a step as IR text, with the names of arguments and states as comments
// behind the lines that define them. For people; `print` gives the text `parse` reads.
#include <string>

#include "braintrace/model/step_model.h"

namespace braintrace {

std::string program_text(const StepModel& step);

}  // namespace braintrace
