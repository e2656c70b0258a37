// SPDX-License-Identifier: Apache-2.0
#pragma once
// The programs a per-parameter rule runs for one relation and one of its groups, written
// once from the op's eligibility rule (docs/etrace.md: instant, propagate, contract).
#include <vector>

#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

// Values of the step's program that a program reads, in input order.
struct BoundProgram {
  Graph graph;
  std::vector<ValueId> reads;  // leading inputs; further ones are given by the caller
};

struct RelationPrograms {
  std::size_t relation = 0;
  std::int64_t group = 0;
  std::vector<Type> traces;  // per slot: (trace..., num_state)
  // reads -> (*varshape, S): one all-ones product through the tail
  BoundProgram df;
  // reads, D, df, traces... -> traces'...     eps' = D eps + df (x) x
  BoundProgram roll;
  // reads, signal, traces... -> gradient per parameter leaf of `leaves`
  BoundProgram solve;
  std::vector<std::string> leaves;  // slash paths
};

enum class PrologueRule {
  pull_back,
  drop
};  // drop: only hooks of the op are pulled back

// One entry per direct relation and group, in order. Needs: no opened loops.
std::vector<RelationPrograms> relation_programs(const ETraceGraph& g,
                                                PrologueRule prologue);

// reads (constants, members at entry) -> D of each group, (*varshape, S, S).
std::vector<BoundProgram> transition_jacobians(const ETraceGraph& g);

// Every value the programs above read, each once.
std::vector<ValueId> values_read(const std::vector<RelationPrograms>& relations,
                                 const std::vector<BoundProgram>& jacobians);

}  // namespace braintrace
