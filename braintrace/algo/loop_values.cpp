// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/loop_values.h"

#include <set>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

LoopValues::LoopValues(const ModuleInfo& step, const ScanDescentInfo& loop,
                       std::vector<ValueId> ids)
    : step_(step), loop_(loop) {
  const std::set<ValueId> distinct(ids.begin(), ids.end());
  for (ValueId v : distinct) (loop.stacked.contains(v) ? moving_ : fixed_).push_back(v);
  const Graph& body = loop.body.program();
  const auto consts = body.inputs().first(loop.num_consts);
  once_ = subgraph(body, consts, fixed_);
}

std::vector<ValueId> LoopValues::constants() const {
  const Node& n = step_.program().nodes()[loop_.node];
  return {n.inputs.begin(),
          n.inputs.begin() + static_cast<std::ptrdiff_t>(loop_.num_consts)};
}

std::vector<ValueId> LoopValues::reads() const {
  std::vector<ValueId> out = constants();
  for (ValueId v : moving_) out.push_back(loop_.stacked.at(v));
  return out;
}

std::vector<Value> LoopValues::stacked(const StepValues& step) const {
  std::vector<Value> out;
  for (ValueId v : moving_) out.push_back(step.at(loop_.stacked.at(v)));
  return out;
}

StepValues LoopValues::at(const StepValues& step, std::span<const Value> slices) const {
  StepValues out;
  for (std::size_t i = 0; i < moving_.size(); ++i) out.emplace(moving_[i], slices[i]);
  std::vector<Value> in;
  for (ValueId v : constants()) in.push_back(step.at(v));
  const std::vector<Value> fixed = inline_graph(once_, in);
  for (std::size_t i = 0; i < fixed_.size(); ++i) out.emplace(fixed_[i], fixed[i]);
  return out;
}

StepValues LoopValues::last(const StepValues& step) const {
  std::vector<Value> slices;
  for (const Value& v : stacked(step))
    slices.push_back(squeeze(slice_axis(v, 0, loop_.length - 1, 1), 0));
  return at(step, slices);
}

}  // namespace braintrace
