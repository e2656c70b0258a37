// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where past credit stops (docs/etrace.md, the cut set), and what history is dropped
// there.
#include <string>
#include <vector>

#include "braintrace/etrace/hidden_group.h"

namespace braintrace {

// How influence is followed under the given options.
FlowOptions flow_options(const CompileOptions& options);

// Nodes that lie on a kept path to one of `outputs`, in program order.
std::vector<std::size_t> nodes_between(const GraphIndex& index,
                                       const Influence& influence,
                                       std::span<const ValueId> outputs);

// One place where the past of a group, or of a weight, is no longer credited. A cut at an
// op that only moves entries ([x, h]) has one entry per product that reads it, and these
// are named.
struct CutEntry {
  Use use;                          // where the program is cut
  std::string op;                   // "etp_mm", "reduce_sum", ...
  std::string where;                // "model.cpp:12", "" when unknown
  std::optional<Path> weight_path;  // of the trainable op cut through
  std::vector<Path> from;           // members whose past stops here
  std::vector<Path> weights;        // parameters whose past stops here
  std::vector<Path> to;             // hidden states that lie beyond
};

struct HiddenParamOpRelation;

// The cuts of all groups and direct relations that have a hidden state beyond them, and
// the edges between groups, in program order. Needs: mixing = cut.
std::vector<CutEntry> cut_set(const ModuleInfo& info,
                              const std::vector<HiddenGroup>& groups,
                              const std::vector<HiddenParamOpRelation>& relations);
std::string to_string(const CutEntry& c);

// The name a node has in graphs: the reference's for trainable ops, else the op's own.
std::string node_name(const Graph& g, const Node& n);

}  // namespace braintrace
