// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meaning of a program on numbers, node by node through OpDef::eval.
#include <functional>
#include <span>
#include <vector>

#include "braintrace/ir/graph.h"

namespace braintrace {

// Packs the inputs, allocates outputs of the inferred types, runs the op.
std::vector<Array> eval_op(const OpDef& op, std::span<const Array> inputs,
                           const Attrs& attrs);

// Called after each node with its outputs.
using NodeObserver = std::function<void(const Node&, std::span<const Array>)>;

// UserError when the inputs do not have the types of the graph's inputs.
std::vector<Array> eval_graph(const Graph& g, std::span<const Array> inputs,
                              const NodeObserver& observe = {});

}  // namespace braintrace
