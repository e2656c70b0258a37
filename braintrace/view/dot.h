// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pictures as Graphviz text. Colours and classes are the same in all of them
// (docs/show.md).
#include <string>
#include <vector>

#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

// Who feeds whom: hidden groups as clusters, weights as boxes, relations as edges
// (direct: solid blue; dense: bold orange), weights without a trace dashed with the
// reason, cuts as red dotted edges from the group whose past stops to the states beyond.
// `notes`, one per relation, are added to what the pointer shows over its edge.
std::string to_dot(const ETraceGraph& g, const std::vector<std::string>& notes = {});

// Every op of the program as a node. Values between ops are edges with their type.
std::string to_dot(const Graph& g);
// The same with the names of arguments and states.
std::string to_dot(const StepModel& step);

}  // namespace braintrace
