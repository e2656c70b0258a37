// SPDX-License-Identifier: Apache-2.0
#pragma once
// A read-only summary of a compiled graph, as text for people.
#include <map>
#include <string>

#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

struct CompilationReport {
  struct Group {
    std::int64_t index;
    std::vector<Path> paths;
  };
  struct TracedWeight {
    Path path;
    std::vector<std::int64_t> groups;
  };
  struct ExcludedWeight {
    Path path;
    std::string reason;  // "" when the compiler never met it as a trainable op
  };

  CompilationReport() = default;
  explicit CompilationReport(const ETraceGraph& graph);

  std::vector<Group> hidden_groups;
  std::vector<TracedWeight> relations;       // one per relation, as the text lists them
  std::vector<TracedWeight> etrace_weights;  // one per relation and trainable key
  std::vector<ExcludedWeight> excluded_weights;
  std::vector<Path> dynamic_states;  // short-term states in no group
  std::vector<CompilationRecord> diagnostics;
  std::vector<ParameterVerdict> verdicts;
  // The reference's counts, where etrace_weights counts relations and keys; and
  // etrace_parameters, the number of parameters that are traced.
  std::map<std::string, std::size_t> counts;

  // The reference's layout, byte for byte: level 0 is the one-line form, level 2 adds
  // warnings and errors.
  std::string to_str(int level = 1) const;
  std::string one_line() const;
  // Verdict and reason per parameter, cuts included: what the reference does not say.
  std::string verdict_table() const;
};

}  // namespace braintrace
