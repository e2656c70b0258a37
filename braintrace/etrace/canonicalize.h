// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a traced step ready for analysis: conds that matter become selects, short scans
// that matter are unrolled, and every hidden state gets an output value of its own.
// Needs: a traced step. Keeps: inputs, outputs and their order. Skips: control flow that
// touches no weight and no hidden state; loops that are long or of unknown length.
// One recursive pass over sub-graphs, so it ends by construction.
#include "braintrace/etrace/diagnostics.h"
#include "braintrace/etrace/options.h"
#include "braintrace/model/step_model.h"

namespace braintrace {

StepModel canonical_step(const StepModel& step, const CompileOptions& options,
                         Diagnostics& diagnostics);

}  // namespace braintrace
