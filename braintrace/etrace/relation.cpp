// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/relation.h"

#include <fmt/format.h>

#include "braintrace/etrace/scan_descent.h"
#include "braintrace/ir/evaluate.h"

namespace braintrace {
namespace {

template <class T>
auto trainables_by_key(const std::vector<Trainable>& all, T Trainable::*field) {
  HiddenParamOpRelation::ByKey<T> out;
  for (const Trainable& t : all) out.emplace_back(t.key, t.*field);
  return out;
}

}  // namespace

std::string_view to_string(PathClass c) {
  switch (c) {
    case PathClass::all_direct:
      return "all_direct";
    case PathClass::mixed:
      return "mixed";
    case PathClass::all_through_other_etp:
      return "all_through_other_etp";
  }
  return "";
}

const Attrs& HiddenParamOpRelation::eqn_params(const ModuleInfo& info) const {
  const ModuleInfo& home = control_flow_context ? control_flow_context->body : info;
  BT_REQUIRE(node < home.program().nodes().size() &&
                 home.program().nodes()[node].outputs[0] == y,
             fmt::format("eqn_params: {} is no op of this program", primitive));
  return home.program().nodes()[node].attrs;
}

HiddenParamOpRelation::ByKey<ValueId> HiddenParamOpRelation::trainable_vars() const {
  return trainables_by_key(trainables, &Trainable::operand);
}

HiddenParamOpRelation::ByKey<Path> HiddenParamOpRelation::trainable_paths() const {
  return trainables_by_key(trainables, &Trainable::path);
}

HiddenParamOpRelation::ByKey<std::size_t> HiddenParamOpRelation::trainable_leaf_indices()
    const {
  return trainables_by_key(trainables, &Trainable::leaf);
}

HiddenParamOpRelation::ByKey<ParamState*> HiddenParamOpRelation::trainable_param_states()
    const {
  return trainables_by_key(trainables, &Trainable::state);
}

HiddenParamOpRelation::ByKey<std::vector<std::string>>
HiddenParamOpRelation::trainable_processing_chains() const {
  ByKey<std::vector<std::string>> out;
  for (const Trainable& t : trainables) out.emplace_back(t.key, t.prologue.chain);
  return out;
}

std::vector<const HiddenGroup*> HiddenParamOpRelation::hidden_groups(
    const std::vector<HiddenGroup>& all) const {
  std::vector<const HiddenGroup*> out;
  for (std::int64_t i : group_indices)
    out.push_back(&all.at(static_cast<std::size_t>(i)));
  return out;
}

std::vector<std::vector<Array>> HiddenParamOpRelation::y_to_hidden_states(
    const Array& y_value, const std::vector<std::vector<Array>>& const_vals) const {
  BT_REQUIRE(const_vals.size() == tails.size(),
             fmt::format("y_to_hidden_groups: {} has {} tails, got constants for {}",
                         primitive, tails.size(), const_vals.size()));
  std::vector<std::vector<Array>> out;
  for (std::size_t i = 0; i < tails.size(); ++i) {
    std::vector<Array> in = const_vals[i];
    in.push_back(y_value);
    out.push_back(eval_graph(tails[i], in));
  }
  return out;
}

std::vector<Array> HiddenParamOpRelation::y_to_hidden_groups(
    const std::vector<HiddenGroup>& all, const Array& y_value,
    const std::vector<std::vector<Array>>& const_vals) const {
  const auto fed = hidden_groups(all);
  std::vector<Array> out;
  for (const std::vector<Array>& members : y_to_hidden_states(y_value, const_vals))
    out.push_back(fed[out.size()]->concat_hidden(members));
  return out;
}

std::vector<std::pair<std::string, std::string>> HiddenParamOpRelation::dict() const {
  std::string keys, classes;
  for (const Trainable& t : trainables)
    keys += fmt::format("{}{}: {}", keys.empty() ? "" : ", ", t.key, to_string(t.path));
  for (const auto& [p, c] : path_classification)
    classes +=
        fmt::format("{}{}: {}", classes.empty() ? "" : ", ", to_string(p), to_string(c));
  return {
      {"primitive", primitive},
      {"path", to_string(path())},
      {"kind", kind == RelationKind::direct ? "direct" : "dense"},
      {"x", x ? fmt::format("%{}", x->index) : "none"},
      {"y", fmt::format("%{}", y.index)},
      {"trainables", keys},
      {"hidden_groups", python_tuple(group_indices)},
      {"connected_hidden_paths", path_list(connected_hidden_paths)},
      {"path_classification", classes},
  };
}

}  // namespace braintrace
