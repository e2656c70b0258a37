// SPDX-License-Identifier: Apache-2.0
#pragma once
// What opaque control flow may and may not touch.
#include "braintrace/etrace/module_info.h"

namespace braintrace {

// A parameter that enters a loop or branch the compiler does not open.
struct EnclosedWeight {
  Path path;
  std::size_t node;
  std::string kind;   // "scan", "while", "cond"
  std::string place;  // "scan at model.cpp:12"
};
// Each parameter once per node, in program order. Parameters behind a value made of
// parameters alone count too, except under weight_source = first_found.
std::vector<EnclosedWeight> enclosed_weights(const ModuleInfo& info,
                                             const CompileOptions& options);

// For every loop, branch or call that is left in the program: a weight among its inputs
// is recorded or refused, as etp_in_control_flow says; in a while loop it is refused
// unless on_refused = freeze. A hidden state among its outputs is recorded, or refused
// under while_hidden = "error".
void check_control_flow(const ModuleInfo& info, const CompileOptions& options,
                        Diagnostics& diagnostics);

// The reference's second round of records, when perturbations are added: every opaque
// result again, and that reverse mode stops at a while loop. Nothing under opaque_records
// = once.
void note_opaque_perturbation(const ModuleInfo& info, const CompileOptions& options,
                              Diagnostics& diagnostics);

// Trainable ops inside opaque control flow: recorded, or refused under "error".
void check_etp_in_control_flow(const ModuleInfo& info, Diagnostics& diagnostics);

}  // namespace braintrace
