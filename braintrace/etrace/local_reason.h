// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why the past of a parameter is not traced, in words a model writer can act on.
#include <string>

#include "braintrace/etrace/module_info.h"

namespace braintrace {

// Names the first thing that stands between the parameter and a trace: a loop that stays
// closed, a plain op, a trainable op that takes it as data, or mixing behind its own op.
// Needs: a parameter the step uses and no relation traces.
std::string why_local(const ModuleInfo& info, const Path& path);

}  // namespace braintrace
