// SPDX-License-Identifier: Apache-2.0
#pragma once
// The summary of a compiled graph as JSON, for programs: the fields of a recorded run's
// `expected.graph` (tests/goldens/README.md) and, beyond them, relation kind and reason,
// messages, `verdicts` and `cuts`.
#include <string>

#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

// Keys in the order above; two spaces per level.
std::string to_json(const ETraceGraph& g);

}  // namespace braintrace
