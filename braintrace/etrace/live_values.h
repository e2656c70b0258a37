// SPDX-License-Identifier: Apache-2.0
#pragma once
// What derivatives flow through, and where they end without a trace.
#include <vector>

#include "braintrace/etrace/module_info.h"

namespace braintrace {

// By value id: may an output of the step, or a state at its exit, have a derivative in
// it? One backward sweep.
std::vector<bool> live_values(const ModuleInfo& info);

// A record for every short-term state that carries credit to the next step and loses it
// there, because rules follow hidden states alone.
std::vector<CompilationRecord> short_term_cuts(const ModuleInfo& info);

}  // namespace braintrace
