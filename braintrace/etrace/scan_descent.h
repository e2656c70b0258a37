// SPDX-License-Identifier: Apache-2.0
#pragma once
// Long scans that carry hidden states: the body is analysed as a step of its own, and the
// loop is rewritten to hand out, stacked over its sub-steps, what a learning rule needs.
#include <memory>
#include <vector>

#include "braintrace/etrace/relation.h"

namespace braintrace {

// One opened loop. Groups and relations of its body refer to values of `body`.
struct ScanDescentInfo {
  std::int64_t length = 0;
  std::size_t num_consts = 0, num_carry = 0;
  std::size_t node = 0;                // the loop in the step's program
  ModuleInfo body;                     // hidden states = carries, weights = constants
  std::map<ValueId, ValueId> stacked;  // body value -> (length, ...) of the program
  std::vector<HiddenGroup> groups;     // as found in the body
  std::vector<HiddenParamOpRelation> relations;

  const Graph& body_jaxpr() const { return body.program(); }
  const std::map<ValueId, ValueId>& stacked_var_map() const { return stacked; }
  std::size_t scan_eqn_id() const { return node; }
};

using ScanDescent = std::vector<std::shared_ptr<const ScanDescentInfo>>;

// Opens every long loop that uses weights, where it can; `info` is rewritten accordingly.
// Keeps: inputs, outputs. Skips, with a record: reversed loops, nested control flow,
// weights read slice by slice, carries that do not start at the state itself.
ScanDescent apply_scan_descent(ModuleInfo& info, const CompileOptions& options,
                               Diagnostics& diagnostics);

// Body groups behind the flat ones, re-indexed.
void append_groups(std::vector<HiddenGroup>& groups, const ScanDescent& descent);
// Body relations behind the flat ones. UserError not_implemented when a flat relation
// feeds an opened loop.
void append_relations(std::vector<HiddenParamOpRelation>& relations,
                      const std::vector<HiddenGroup>& groups, const ScanDescent& descent);
// The stacked values of all opened loops.
std::vector<ValueId> stacked_values(const std::vector<HiddenGroup>& groups);

}  // namespace braintrace
