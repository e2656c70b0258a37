// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/weight_source.h"

#include <set>

#include "braintrace/ir/constant.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {

bool ends_prologue(const Node& n) {
  return is_structural_etp(n) ||
         any_node(n, [](const Node& m) { return as_while(m).has_value(); });
}

Prologue prologue_of(const ModuleInfo& info, ValueId operand) {
  Prologue p;
  std::vector<ValueId> open = {operand};
  std::set<ValueId> seen = {operand};
  std::set<std::string> ops;
  for (std::size_t at = 0; at < open.size(); ++at) {
    if (const WeightVar* w = info.weight_at(open[at])) {
      p.parameters.push_back(*w);
      continue;
    }
    const auto producer = info.index->producer(open[at]);
    if (!producer) {
      p.dynamic = true;
      if (const auto made = info.made_outside.find(open[at]);
          made != info.made_outside.end())
        p.outside.insert(p.outside.end(), made->second.begin(), made->second.end());
      continue;
    }
    const Node& n = info.index->node(*producer);
    if (ends_prologue(n)) {
      p.dynamic = true;
      continue;
    }
    if (!literal(n) && ops.insert(std::string(n.op->name)).second)
      p.chain.emplace_back(n.op->name);
    for (ValueId v : n.inputs)
      if (seen.insert(v).second) open.push_back(v);
  }
  return p;
}

std::optional<Path> first_weight_path(const ModuleInfo& info, const Node& n) {
  if (!n.op->etp) return std::nullopt;
  const NodeTypes types = types_of(info.program(), n);
  for (const WeightInput& w : n.op->etp->weights({types.in, types.out, n.attrs})) {
    const Prologue p = prologue_of(info, n.inputs[static_cast<std::size_t>(w.input)]);
    if (!p.parameters.empty()) return p.parameters.front().path;
  }
  return std::nullopt;
}

}  // namespace braintrace
