// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/golden_graph.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/graph_options.h"
#include "braintrace/etrace/report.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/parity_impl.h"

namespace braintrace::testing {
namespace {

using nlohmann::json;

Array first_input(const json& c) {
  const json& inputs = c.at("inputs");
  Shape shape = inputs.at("shape").get<Shape>();
  const std::size_t leading = c.at("mode") == "vmap" ? 2 : 1;
  BT_REQUIRE(shape.size() >= leading,
             fmt::format("graph_difference: inputs need {} leading axes, got {}", leading,
                         to_string(shape)));
  shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(leading));
  const bool integer = inputs.value("dtype", "float32").starts_with("int");
  return zeros(shape, integer ? DType::i32 : DType::f32);
}

CompileOptions options_of(const json& c) {
  const internal::RecordedRule rule = internal::recorded_rule(c);
  return graph_options(rule.algorithm, rule.graph);
}

// The summary in the layout of the files.
json list(const std::vector<Path>& paths) {
  json out = json::array();
  for (const Path& p : paths) out.push_back(to_slashes(p));
  return out;
}

json summary(const ETraceGraph& g, const json& c) {
  const CompilationReport report(g);
  json s = {{"hidden_groups", json::array()},
            {"relations", json::array()},
            {"excluded_weights", json::array()},
            {"dynamic_states", list(report.dynamic_states)},
            {"diagnostics", json::array()}};
  for (const HiddenGroup& group : g.hidden_groups) {
    Shape v = group.varshape();
    if (c.at("mode") == "vmap") v.insert(v.begin(), c.at("batch").get<std::int64_t>());
    s["hidden_groups"].push_back({{"index", group.index},
                                  {"hidden_paths", list(group.hidden_paths())},
                                  {"num_state", group.num_state()},
                                  {"varshape", v}});
  }
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    json trainable = json::object(), classes = json::object();
    for (const Trainable& t : r.trainables)
      trainable[t.key] = {{"path", to_slashes(t.path)}, {"leaf_index", t.leaf}};
    for (const auto& [p, k] : r.path_classification)
      classes[to_slashes(p)] = std::string(to_string(k));
    s["relations"].push_back({{"weight_path", to_slashes(r.path())},
                              {"primitive", r.primitive},
                              {"trainable", trainable},
                              {"hidden_groups", r.group_indices},
                              {"connected_hidden_paths", list(r.connected_hidden_paths)},
                              {"path_classification", classes},
                              {"descended", r.control_flow_context != nullptr}});
  }
  for (const auto& w : report.excluded_weights)
    s["excluded_weights"].push_back(
        {{"path", to_slashes(w.path)},
         {"reason", w.reason.empty() ? json() : json(w.reason)}});
  for (const CompilationRecord& r : g.diagnostics)
    s["diagnostics"].push_back(
        {{"kind", std::string(to_string(r.kind))},
         {"level", std::string(to_string(r.level))},
         {"weight_path", r.weight_path ? json(to_slashes(*r.weight_path)) : json()},
         {"primitive", r.primitive.empty() ? json() : json(r.primitive)},
         {"hidden_paths", list(r.hidden_paths)}});
  return s;
}

json picked(const json& object, std::initializer_list<const char*> fields) {
  json out = json::object();
  for (const char* field : fields) out[field] = object.at(field);
  return out;
}

// What the file says, reduced to the fields compared.
json expected(const json& graph) {
  json e = picked(graph, {"hidden_groups", "relations", "excluded_weights",
                          "dynamic_states", "diagnostics"});
  for (json& d : e["diagnostics"])
    d = picked(d, {"kind", "level", "weight_path", "primitive", "hidden_paths"});
  return e;
}

std::string first_difference(const json& got, const json& want) {
  for (const json& op : json::diff(want, got)) {
    const std::string kind = op.at("op"), path = op.at("path");
    return fmt::format(
        "{} {}: wanted {}, got {}", kind, path,
        kind == "add" ? "nothing" : want.at(json::json_pointer(path)).dump(),
        op.contains("value") ? op.at("value").dump() : "nothing");
  }
  return "";
}

// The reference names trainable ops always, the loop a record is about only sometimes.
void forget_unrecorded_loops(json& ours, const json& recorded) {
  for (std::size_t i = 0; i < std::min(ours.size(), recorded.size()); ++i) {
    json& primitive = ours[i].at("primitive");
    const bool trainable =
        primitive.is_string() && primitive.get<std::string>().starts_with("etp_");
    if (recorded[i].at("primitive").is_null() && !trainable) primitive = nullptr;
  }
}

std::string compile_and_compare(const json& c) {
  const auto model = nn::build_model(c.dump());
  InitOptions init;
  if (c.at("mode") == "batch") init.batch_size = c.at("batch").get<std::int64_t>();
  init_all_states(*model, init);
  const ETraceGraph g = compile_etrace_graph(*model, {first_input(c)}, options_of(c));
  const json want = expected(c.at("expected").at("graph"));
  json got = summary(g, c);
  forget_unrecorded_loops(got.at("diagnostics"), want.at("diagnostics"));
  return first_difference(got, want);
}

}  // namespace

std::string graph_difference(const std::string& case_text) {
  const json c = json::parse(case_text, nullptr, false);
  BT_REQUIRE(c.is_object() && c.contains("expected"),
             "graph_difference: not a golden case");
  if (!c.at("expected").contains("graph")) return "";
  try {
    return compile_and_compare(c);
  } catch (const json::exception& e) {
    throw UserError(std::string("graph_difference: a field is malformed: ") + e.what());
  }
}

}  // namespace braintrace::testing
