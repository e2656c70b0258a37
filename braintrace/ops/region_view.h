// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a loop or branch node is made of, for analyses that look inside.
#include <cstdint>
#include <optional>
#include <span>

#include "braintrace/ir/graph.h"

namespace braintrace {

// Inputs: consts, carry, xs. Outputs: carry, ys. Body: (consts, carry, x) -> (carry, y).
struct ScanView {
  const Graph* body;
  std::int64_t length;
  std::size_t num_consts, num_carry;
  bool reverse;
};
// Inputs: consts of the condition, consts of the body, carry.
struct WhileView {
  const Graph *condition, *body;
  std::size_t num_condition_consts, num_body_consts;
};
// Inputs: predicate, operands. Branches: operands -> outputs.
struct CondView {
  const Graph *if_true, *if_false;
};

std::optional<ScanView> as_scan(const Node& n);
std::optional<WhileView> as_while(const Node& n);
std::optional<CondView> as_cond(const Node& n);

// By value: is it read, by an output or a node? Loops read what their bodies do.
std::vector<bool> read_values(const Graph& g);
// By input: does the body of the loop read it? A carry counts as read.
std::vector<bool> read_inputs(const ScanView& scan);

// The attributes of a scan that also hands out these values of its body, stacked, behind
// its other ys.
Attrs scan_attrs_with_ys(const Node& scan, std::span<const ValueId> body_values);

// The attributes of the scan with another body: (consts, carry, x) -> (carry, y).
Attrs scan_attrs_with_body(const Node& scan, Graph body, std::size_t num_consts,
                           std::size_t num_carry);

// True when the node, or a node of any of its sub-graphs, is what `test` looks for.
bool any_node(const Node& n, bool (*test)(const Node&));
// A loop of unknown length, at any depth.
bool has_while(const Graph& g);

}  // namespace braintrace
