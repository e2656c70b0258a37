// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands between a parameter and the weight operand of a trainable op: the prologue.
#include <optional>
#include <vector>

#include "braintrace/etrace/module_info.h"

namespace braintrace {

struct Prologue {
  std::vector<WeightVar> parameters;  // leaves it is made of, nearest first
  bool dynamic = false;               // reads an input, a state or a key as well
  std::vector<std::string> chain;     // ops from the operand back to the leaves
  std::vector<Path> outside;  // in a loop: parameters behind ModuleInfo::made_outside
  bool is_identity() const { return chain.empty() && parameters.size() == 1; }
};

// What stands behind another trainable op is that op's; behind a loop of unknown length
// no weight can be trained.
bool ends_prologue(const Node& n);
// Everything behind a value, by breadth-first search over producers.
Prologue prologue_of(const ModuleInfo& info, ValueId operand);

// The parameter named when a trainable op is shown; nullopt for other ops.
std::optional<Path> first_weight_path(const ModuleInfo& info, const Node& n);

}  // namespace braintrace
