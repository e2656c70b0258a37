// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step of a compiled program, cut in the ways the judge needs.
#include <functional>
#include <map>
#include <set>

#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/ops/ops.h"

namespace braintrace::testing {

// Each is a program of the step's inputs, and of what is named besides.
class CutStep {
 public:
  explicit CutStep(const ETraceGraph& graph);

  // -> [model outputs | state leaves]
  Graph plain;
  // (..., p per hidden state) -> the same, readers and exits seeing h_out + p; nothing
  // flows through loops of unknown length
  Graph perturbed;
  // -> model outputs, every hidden output a constant
  Graph reads_old;
  // Per group, -> members at exit:
  std::vector<Graph> moved;  // cut where the group's past is
  std::vector<Graph> held;   // and with every hidden output a constant for its readers
  // (..., change per member) -> members at exit: what a change of one does to the others
  // within the step, around loops of unknown length. Where the step has such loops.
  std::vector<Graph> edges;
  // Per relation and group it feeds, (..., weight operands) -> members at exit.
  struct Feed {
    std::size_t relation, group;
    Graph operands;  // step's inputs -> weight operands
    Graph fed;       // cut where the relation is
    // Where the step has loops of unknown length: without what runs through them, and the
    // edges between members that the relation keeps.
    std::optional<Graph> fed_around, edges;
  };
  std::vector<Feed> feeds;

 private:
  using OnUse = std::function<Value(Use, const Value&)>;
  using OnResult = std::function<Value(ValueId, const Value&)>;
  Graph rewritten(const std::vector<Type>& more, const std::vector<ValueId>& outputs,
                  const std::function<OnUse(const Values&)>& on_use,
                  const std::function<OnResult(const Values&)>& on_result = {}) const;
  bool is_while(Use u) const;
  Graph edges_of(const HiddenGroup& g, const std::set<Use>& cuts) const;
  void add_group(const HiddenGroup& g);
  void add_feeds(std::size_t relation);

  const ETraceGraph& graph_;
  const ModuleInfo& info_;
};

}  // namespace braintrace::testing
