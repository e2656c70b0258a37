// SPDX-License-Identifier: Apache-2.0
#pragma once
// What opaque control flow may and may not touch.
#include "braintrace/etrace/module_info.h"

namespace braintrace {

// For every loop, branch or call that is left in the program: a weight among its inputs
// is refused (unless the loop will be analysed body by body); a hidden state among its
// outputs is recorded, or refused under while_hidden = "error".
void check_control_flow(const ModuleInfo& info, const CompileOptions& options,
                        Diagnostics& diagnostics);

// The reference's second round of records, when perturbations are added: every opaque
// result again, and that reverse mode stops at a while loop. Nothing under opaque_records
// = once.
void note_opaque_perturbation(const ModuleInfo& info, const CompileOptions& options,
                              Diagnostics& diagnostics);

// Trainable ops inside opaque control flow: refused, or recorded under "exclude".
void check_etp_in_control_flow(const ModuleInfo& info, Diagnostics& diagnostics);

}  // namespace braintrace
