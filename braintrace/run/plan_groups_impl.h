// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes run together, and in which order.
#include <span>
#include <vector>

#include "braintrace/ir/graph.h"
#include "braintrace/ir/lowering.h"

namespace braintrace::plan {

// Nodes by index, in order. More than one: an element-by-element chain over one shape, or
// products and their additions, perhaps to an input.
struct Group {
  std::vector<std::size_t> nodes;
  bool fused = false;
  std::vector<std::size_t> sums = {};  // reductions of its values in the same pass
  std::size_t num_lead = 0;            // the leading axes they sum over
};

// Element-by-element nodes of one shape go together when no path between them leaves the
// group; sums of them over leading axes too, when what is summed is large. Two products
// that are only added go with their addition. Groups come in an order that respects all
// uses and stays close to the program's.
// `overwrites`: an output that would like to lie where an input does; whoever makes it
// waits for the other readers of that input where it can.
struct Overwrite {
  ValueId input, output;
};
std::vector<Group> groups_of(const Graph& g, std::span<const Lowering> lowered,
                             std::span<const Overwrite> overwrites);
// The last step of it.
std::vector<Group> ordered(std::vector<Group> groups, const Graph& g,
                           std::span<const Lowering> lowered,
                           std::span<const Overwrite> overwrites);

// Can be added to what lies where its result goes.
bool is_product(const Lowering& l);
// By node: it adds products that nobody else reads, so that each can be added where the
// one before it lies: two products, or any number of them to an input that becomes an
// output.
std::vector<bool> additions_of_products(const Graph& g,
                                        std::span<const Lowering> lowered);

// The output is the input under another shape, type or order: no work of its own.
bool is_window(const Graph& g, const Node& n, const Lowering& l);

}  // namespace braintrace::plan
