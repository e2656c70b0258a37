// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run can be asked about itself: its certificate and its page.
#include "run_file.h"

#include "braintrace/base/certificate.h"

namespace braintrace::cli {

// On `batch` samples that were not trained on.
CertificateData certificate_of(BuiltRun& b, std::int64_t window = 1);
// One self-contained HTML page: curves, graph, equations, memory, certificate.
std::string report_page(BuiltRun& b);
// What the run is, in words: for the page and the head of a training.
std::vector<std::pair<std::string, std::string>> facts_of(const BuiltRun& b);

}  // namespace braintrace::cli
