// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which hidden states one trainable op reaches inside a step, and how.
#include <set>
#include <vector>

#include "braintrace/etrace/relation.h"

namespace braintrace {

struct Reach {
  std::set<std::int64_t> fed;         // groups reached before any other hidden state
  std::vector<ValueId> hidden_outs;   // of fed groups, in order of reach
  std::vector<std::size_t> blocking;  // other structural trainable ops met
  std::vector<Use> cuts;              // positions mix here (sound mode)
  std::vector<Path> shape_mismatch;   // reached, but y does not fit
  // Groups that lie beyond mixing or other trainable ops only.
  std::set<std::int64_t> beyond;
};

class ReachFinder {
 public:
  ReachFinder(const ModuleInfo& info, const std::vector<HiddenGroup>& groups,
              const CompileOptions& options);

  Reach reach(std::size_t node) const;
  PathClass classify(std::size_t node, const Reach& r, ValueId hidden_out) const;
  std::int64_t group_of(ValueId hidden_out) const { return group_of_.at(hidden_out); }
  // (constants, y) -> members of one group at step exit.
  SubProgram tail(std::size_t node, std::int64_t group, RelationKind kind) const;

 private:
  Reach reach_reference(std::size_t node) const;
  Reach reach_by_position(std::size_t node) const;
  bool fits(std::size_t node, const Alignment& a, const HiddenVar& h) const;
  bool passes_filter(const Shape& y, const HiddenVar& h) const;
  std::vector<ValueId> walk(ValueId y, bool cross_etp,
                            const std::set<std::int64_t>* pass_groups) const;
  std::vector<ValueId> walk_derivatives(ValueId y) const;
  std::vector<ValueId> outs_of(const HiddenGroup& g) const;  // in the step's program
  StopAt outs_outside(std::set<std::int64_t> groups) const;

  const ModuleInfo& info_;
  const std::vector<HiddenGroup>& groups_;
  const CompileOptions& options_;
  std::map<ValueId, std::int64_t> group_of_;
};

}  // namespace braintrace
