// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/relation.h"

#include <fmt/format.h>

#include "braintrace/ir/evaluate.h"

namespace braintrace {

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

std::vector<const HiddenGroup*> HiddenParamOpRelation::hidden_groups(
    const std::vector<HiddenGroup>& all) const {
  std::vector<const HiddenGroup*> out;
  for (std::int64_t i : group_indices)
    out.push_back(&all.at(static_cast<std::size_t>(i)));
  return out;
}

std::vector<Array> HiddenParamOpRelation::y_to_hidden_groups(
    const std::vector<HiddenGroup>& all, const Array& y_value,
    const std::vector<std::vector<Array>>& const_vals) const {
  BT_REQUIRE(const_vals.size() == tails.size(),
             fmt::format("y_to_hidden_groups: {} has {} tails, got constants for {}",
                         primitive, tails.size(), const_vals.size()));
  std::vector<Array> out;
  for (std::size_t i = 0; i < tails.size(); ++i) {
    std::vector<Array> in = const_vals[i];
    in.push_back(y_value);
    out.push_back(hidden_groups(all)[i]->concat_hidden(eval_graph(tails[i], in)));
  }
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
