// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run tells about itself: a few facts, and its page.
#include "run_file.h"

namespace braintrace::cli {

// One self-contained HTML page: curves, graph, equations, memory, certificate.
std::string report_page(BuiltRun& b);
// What the run is, in words: for the page and the head of a training.
std::vector<std::pair<std::string, std::string>> facts_of(const BuiltRun& b);

}  // namespace braintrace::cli
