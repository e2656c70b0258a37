// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happened in a run as JSON text, for checkpoints and for other programs.
#include <string>
#include <string_view>

#include "braintrace/base/run_log.h"

namespace braintrace {

enum class RunLogPart { curves, all };  // all: with the spike rasters
// Facts are not in it: they are made anew from the run.
std::string run_log_to_json(const RunLog& log, RunLogPart part = RunLogPart::all);
RunLog run_log_from_json(std::string_view text);  // UserError on what is no such log

}  // namespace braintrace
