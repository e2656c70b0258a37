// SPDX-License-Identifier: Apache-2.0
#pragma once
// A loop that is opened finds its weights among its constants. What stands between a
// parameter and such a constant (a mask, a tanh) moves into the body, where it is the
// prologue of the ops that read it.
#include "braintrace/etrace/module_info.h"

namespace braintrace {

// A loop as it becomes: inputs in the enclosing program, and its attributes.
struct SunkScan {
  std::vector<ValueId> inputs;
  Attrs attrs;
};

// nullopt when no constant of the scan is made of parameters by other ops. Constants that
// also read inputs or states stay.
std::optional<SunkScan> with_prologues_inside(const ModuleInfo& info, const Node& scan);

}  // namespace braintrace
