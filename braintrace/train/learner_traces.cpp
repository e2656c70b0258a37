// SPDX-License-Identifier: Apache-2.0
// A learner's traces, looked at and replaced.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/train/learner_impl.h"
#include "braintrace/transforms/vmap.h"

namespace braintrace {

namespace {

// Lanes share the parameters and have traces of their own.
Graph on_all_lanes(const TraceViewProgram& view, std::optional<std::int64_t> lanes) {
  if (!lanes) return view.graph;
  std::vector<BatchAxis> axes(view.graph.inputs().size(), 0);
  std::fill_n(axes.begin(), view.leaves.size(), std::nullopt);
  return vmap(view.graph, *lanes, {.in_axes = axes});
}

}  // namespace

std::vector<TraceView> Learner::etraces(TraceSpace space) const {
  const auto mine = claim("etraces");
  std::vector<TraceView> out;
  if (space == TraceSpace::parameter) {
    const TraceViewProgram view = parameter_view(*impl_->rule);
    const StateDict leaves = state_dict(impl_->model);
    std::vector<Array> in;
    for (const std::string& leaf : view.leaves) in.push_back(leaves.at(leaf));
    for (const Array& t : impl_->packing.unpacked(impl_->traces))
      in.push_back(t.contiguous());
    const std::vector<Array> values = eval_graph(on_all_lanes(view, impl_->lanes()), in);
    for (std::size_t i = 0; i < values.size(); ++i)
      out.push_back({view.slots[i], values[i]});
    return out;
  }
  const std::vector<Array> traces = impl_->packing.unpacked(impl_->traces);
  for (std::size_t i = 0; i < traces.size(); ++i)
    out.push_back({impl_->rule->traces()[i], traces[i].contiguous()});
  return out;
}

void Learner::Impl::set_traces(const std::vector<Array>& of_rule) {
  std::vector<Array> stored = packing.packed(of_rule);
  const std::vector<Array> again = packing.unpacked(stored);
  const auto same = [](const Array& a, const Array& b) {
    const Array x = a.contiguous(), y = b.contiguous();
    return std::memcmp(x.raw(), y.raw(), x.num_bytes()) == 0;
  };
  if (!packing.is_plain() &&
      !std::equal(of_rule.begin(), of_rule.end(), again.begin(), same)) {
    packing = TracePacking::apart(*rule, lanes());
    for (const auto& [key, e] : programs)
      if (e) e->repack(packing);
    for (const UpdatePlan& u : update_plans) u.executable->repack(packing);
    stored = packing.packed(of_rule);
  }
  traces.clear();
  for (const Array& a : stored) traces.push_back(a.contiguous());
  traces_are_zero = false;
}

std::vector<TraceView> Learner::get_etrace_of(const Path& parameter) const {
  std::vector<TraceView> out;
  const auto& relations = graph().hidden_param_op_relations;
  const auto reads = [&](std::int64_t relation) {
    return relation >= 0 &&
           relations[static_cast<std::size_t>(relation)].path() == parameter;
  };
  for (TraceView& t : etraces(TraceSpace::parameter)) {
    const TraceSlot& s = t.slot;
    const bool own = s.parameter == parameter || reads(s.relation) ||
                     std::any_of(s.readers.begin(), s.readers.end(), reads);
    if (own) out.push_back(std::move(t));
  }
  BT_REQUIRE(!out.empty(), fmt::format("get_etrace_of: {} has no eligibility trace",
                                       to_string(parameter)));
  return out;
}

void Learner::set_etrace(const std::string& name, const Array& value) {
  const auto mine = claim("set_etrace");
  std::vector<Array> traces = impl_->packing.unpacked(impl_->traces);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (impl_->rule->traces()[i].name() != name) continue;
    BT_REQUIRE(value.shape() == traces[i].shape(),
               fmt::format("set_etrace: {} has shape {}, got {}", name,
                           to_string(traces[i].shape()), to_string(value.shape())));
    traces[i] = value.astype(traces[i].dtype()).contiguous();
    impl_->set_traces(traces);
    return;
  }
  throw UserError(fmt::format("set_etrace: no trace '{}'", name));
}

}  // namespace braintrace
