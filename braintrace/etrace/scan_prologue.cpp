// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/scan_prologue.h"

#include <algorithm>
#include <map>
#include <set>

#include "braintrace/etrace/weight_source.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

bool has_prologue(const ModuleInfo& info, ValueId v) {
  if (info.weight_at(v)) return false;
  const Prologue p = prologue_of(info, v);
  return !p.dynamic && !p.parameters.empty();
}

// The value, made anew from the parameters behind it.
Value remade(const ModuleInfo& info, ValueId v, std::map<ValueId, Value>& made) {
  if (const auto it = made.find(v); it != made.end()) return it->second;
  const Node& n = info.index->node(*info.index->producer(v));
  Values in;
  for (ValueId u : n.inputs) in.push_back(remade(info, u, made));
  const Values out = made.begin()->second.builder()->record(*n.op, in, n.attrs, n.loc);
  for (std::size_t k = 0; k < out.size(); ++k) made[n.outputs[k]] = out[k];
  return made.at(v);
}

}  // namespace

std::optional<SunkScan> with_prologues_inside(const ModuleInfo& info, const Node& scan) {
  const ScanView view = *as_scan(scan);
  const auto first = scan.inputs.begin();
  const std::vector<ValueId> before(first,
                                    first + static_cast<std::ptrdiff_t>(view.num_consts));
  std::vector<ValueId> after;
  std::set<ValueId> parameters;
  for (ValueId v : before) {
    if (!has_prologue(info, v)) {
      after.push_back(v);
      continue;
    }
    for (const WeightVar& w : prologue_of(info, v).parameters) parameters.insert(w.id);
  }
  if (parameters.empty()) return std::nullopt;
  for (ValueId w : parameters)
    if (std::find(after.begin(), after.end(), w) == after.end()) after.push_back(w);

  const auto builder = Builder::create();
  std::map<ValueId, Value> made;
  for (ValueId v : after) made[v] = builder->input(info.program().type(v));
  Values moving;
  for (ValueId v : view.body->inputs().subspan(view.num_consts))
    moving.push_back(builder->input(view.body->type(v)));
  Values in;
  for (ValueId v : before) in.push_back(remade(info, v, made));
  in.insert(in.end(), moving.begin(), moving.end());
  SunkScan out{
      .inputs = after,
      .attrs = scan_attrs_with_body(scan, builder->finish(inline_graph(*view.body, in)),
                                    after.size(), view.num_carry)};
  out.inputs.insert(out.inputs.end(),
                    first + static_cast<std::ptrdiff_t>(view.num_consts),
                    scan.inputs.end());
  return out;
}

}  // namespace braintrace
