// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/json.h"

#include <nlohmann/json.hpp>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/report.h"

namespace braintrace {
namespace {

using json = nlohmann::ordered_json;

json slashes(const std::vector<Path>& paths) {
  json out = json::array();
  for (const Path& p : paths) out.push_back(to_slashes(p));
  return out;
}

json or_null(const std::optional<Path>& p) { return p ? json(to_slashes(*p)) : json(); }
json or_null(const std::string& s) { return s.empty() ? json() : json(s); }

json group_json(const HiddenGroup& g) {
  return {{"index", g.index},
          {"hidden_paths", slashes(g.hidden_paths())},
          {"num_state", g.num_state()},
          {"varshape", g.varshape()}};
}

json relation_json(const HiddenParamOpRelation& r) {
  json trainable = json::object(), classes = json::object();
  for (const Trainable& t : r.trainables)
    trainable[t.key] = {{"path", to_slashes(t.path)}, {"leaf_index", t.leaf}};
  for (const Path& p : r.connected_hidden_paths)
    if (r.path_classification.contains(p))
      classes[to_slashes(p)] = to_string(r.path_classification.at(p));
  return {{"weight_path", to_slashes(r.path())},
          {"primitive", r.primitive},
          {"trainable", trainable},
          {"hidden_groups", r.group_indices},
          {"connected_hidden_paths", slashes(r.connected_hidden_paths)},
          {"path_classification", classes},
          {"descended", r.control_flow_context != nullptr},
          {"kind", r.kind == RelationKind::dense ? "dense" : "direct"},
          {"reason", or_null(r.reason)}};
}

json record_json(const CompilationRecord& r) {
  return {{"kind", to_string(r.kind)},
          {"level", to_string(r.level)},
          {"weight_path", or_null(r.weight_path)},
          {"primitive", or_null(r.primitive)},
          {"hidden_paths", slashes(r.hidden_paths)},
          {"message", r.message}};
}

json cut_json(const CutEntry& c) {
  return {{"node", c.use.node},
          {"input", c.use.input},
          {"op", c.op},
          {"where", or_null(c.where)},
          {"weight_path", or_null(c.weight_path)},
          {"from", slashes(c.from)},
          {"weights", slashes(c.weights)},
          {"to", slashes(c.to)}};
}

template <class Items, class F>
json list(const Items& items, F f) {
  json out = json::array();
  for (const auto& item : items) out.push_back(f(item));
  return out;
}

}  // namespace

std::string to_json(const ETraceGraph& g) {
  const CompilationReport report(g);
  json out;
  out["hidden_groups"] = list(g.hidden_groups, group_json);
  out["relations"] = list(g.hidden_param_op_relations, relation_json);
  out["excluded_weights"] = list(report.excluded_weights, [](const auto& w) {
    return json{{"path", to_slashes(w.path)}, {"reason", or_null(w.reason)}};
  });
  out["dynamic_states"] = slashes(report.dynamic_states);
  out["diagnostics"] = list(g.diagnostics, record_json);
  out["verdicts"] = list(g.verdicts, [](const ParameterVerdict& v) {
    return json{{"path", to_slashes(v.path)},
                {"verdict", to_string(v.verdict)},
                {"reason", v.reason}};
  });
  out["cuts"] = list(cut_set(g.module_info, g.hidden_groups, g.hidden_param_op_relations),
                     cut_json);
  // Names that are no UTF-8 must not stop a summary.
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace braintrace
