// SPDX-License-Identifier: Apache-2.0
#pragma once
// One page that needs nothing but itself. About a compiled graph: picture, verdict per
// parameter, groups, relations, cuts, diagnostics to filter, and the program. About a run
// as well: curves, spikes, equations, memory, certificate. Works offline, in light and
// dark.
#include <optional>
#include <string>
#include <vector>

#include "braintrace/algo/algorithm.h"
#include "braintrace/base/certificate.h"
#include "braintrace/base/memory_plan.h"
#include "braintrace/base/run_log.h"
#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

struct HtmlOptions {
  std::string title = "braintrace";
  std::size_t max_program_nodes = 300;  // larger programs are shown as text only
  // What else is known; what is not given is not on the page.
  std::optional<Algorithm> algorithm = {};
  std::optional<RunLog> log = {};
  std::vector<MemoryPlan> memory = {};  // the first: of the rule in use
  std::optional<CertificateData> certificate = {};
};

// UserError as dot_to_svg.
std::string to_html(const ETraceGraph& g, const HtmlOptions& options = {});

}  // namespace braintrace
