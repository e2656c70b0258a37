// SPDX-License-Identifier: Apache-2.0
#pragma once
// One page about a compiled graph that needs nothing but itself: picture, verdict per
// parameter, groups, relations, cuts, diagnostics to filter, and the program. Works
// offline, in light and dark.
#include <string>

#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

struct HtmlOptions {
  std::string title = "braintrace";
  std::size_t max_program_nodes = 300;  // larger programs are shown as text only
};

// UserError as dot_to_svg.
std::string to_html(const ETraceGraph& g, const HtmlOptions& options = {});

}  // namespace braintrace
