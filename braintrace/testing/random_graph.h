// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random well-typed programs over all ops, and the smallest program that still fails.
// Values stay finite and moderate: arguments are brought into each op's domain.
#include <functional>
#include <map>
#include <string>

#include "braintrace/ir/graph.h"

namespace braintrace::testing {

// A program and numbers to run it on.
struct Program {
  Graph graph;
  std::vector<Array> inputs;
};

struct RandomGraphOptions {
  int min_steps = 3, max_steps = 9;  // recipes, of one or a few nodes each
  int max_depth = 2;                 // loops and branches inside each other
  // Axes of up to 65 elements, three sizes per program, so that kernels meet whole
  // vectors and rests; otherwise all have 1 to 3.
  bool odd_sizes = false;
};
// A pure function of the seed. Output 0 is an f64 scalar that depends on most of the
// program; the others are some of its values, of any type.
Program random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

// Uses of each op, sub-graphs included.
std::map<std::string, int> count_ops(const Graph& g);
// All nodes, sub-graphs included.
std::size_t count_nodes(const Graph& g);

// Greedily drops outputs, cuts nodes out (their values become inputs) and steps into
// sub-graphs while `fails` stays true. Needs: fails(p), and fails throws nothing.
Program shrink(Program p, const std::function<bool(const Program&)>& fails);

}  // namespace braintrace::testing
