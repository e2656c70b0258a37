// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/golden_graph.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/etrace/report.h"
#include "braintrace/nn/model_registry.h"

namespace braintrace::testing {
namespace {

using nlohmann::json;

Array first_input(const json& c) {
  Shape shape = c["inputs"]["shape"].get<Shape>();
  const bool integer = c["inputs"].value("dtype", "float32").starts_with("int");
  shape.erase(shape.begin());
  if (c["mode"] == "vmap") shape.erase(shape.begin());
  return zeros(shape, integer ? DType::i32 : DType::f32);
}

CompileOptions options_of(const json& c) {
  CompileOptions o = compat();
  const json& config = c["algorithm"]["resolved_config"];
  const std::string scope = config.value("recurrence_scope", "diagonal");
  o.include_recurrent_mixing = scope != "diagonal";
  if (scope == "sparse_n") o.sparse_n = config["sparse_n"].get<std::int64_t>();
  o.include_hidden_perturb = c["algorithm"]["vjp_method"] == "single-step";
  return o;
}

// The summary in the layout of the files.
json summary(const ETraceGraph& g, const json& c) {
  auto list = [](const std::vector<Path>& paths) {
    json out = json::array();
    for (const Path& p : paths) out.push_back(to_slashes(p));
    return out;
  };
  json s = {{"hidden_groups", json::array()},
            {"relations", json::array()},
            {"excluded_weights", json::array()},
            {"diagnostics", json::array()}};
  for (const HiddenGroup& group : g.hidden_groups) {
    Shape v = group.varshape();
    if (c["mode"] == "vmap") v.insert(v.begin(), c["batch"].get<std::int64_t>());
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
  for (const auto& w : CompilationReport(g).excluded_weights)
    s["excluded_weights"].push_back(
        {{"path", to_slashes(w.path)},
         {"reason", w.reason.empty() ? json() : json(w.reason)}});
  for (const CompilationRecord& r : g.diagnostics)
    s["diagnostics"].push_back(
        {{"kind", std::string(to_string(r.kind))},
         {"level", std::string(to_string(r.level))},
         {"weight_path", r.weight_path ? json(to_slashes(*r.weight_path)) : json()},
         {"hidden_paths", list(r.hidden_paths)}});
  return s;
}

// What the file says, reduced to the fields compared.
json expected(const json& graph) {
  json e = {{"hidden_groups", graph["hidden_groups"]},
            {"relations", graph["relations"]},
            {"excluded_weights", graph["excluded_weights"]},
            {"diagnostics", json::array()}};
  for (const json& d : graph["diagnostics"])
    e["diagnostics"].push_back({{"kind", d["kind"]},
                                {"level", d["level"]},
                                {"weight_path", d["weight_path"]},
                                {"hidden_paths", d["hidden_paths"]}});
  return e;
}

std::string first_difference(const json& got, const json& want) {
  for (const json& op : json::diff(want, got))
    return fmt::format(
        "{} {}: wanted {}, got {}", op["op"].get<std::string>(),
        op["path"].get<std::string>(),
        op["op"] == "add" ? "nothing" : want[json::json_pointer(op["path"])].dump(),
        op.contains("value") ? op["value"].dump() : "nothing");
  return "";
}

std::string compile_and_compare(const json& c) {
  const auto model = nn::build_model(c.dump());
  InitOptions init;
  if (c["mode"] == "batch") init.batch_size = c["batch"].get<std::int64_t>();
  init_all_states(*model, init);
  const ETraceGraph g = compile_etrace_graph(*model, {first_input(c)}, options_of(c));
  return first_difference(summary(g, c), expected(c["expected"]["graph"]));
}

}  // namespace

std::string graph_difference(const std::string& case_text) {
  const json c = json::parse(case_text, nullptr, false);
  BT_REQUIRE(c.is_object() && c.contains("expected"),
             "graph_difference: not a golden case");
  if (!c["expected"].contains("graph")) return "";
  try {
    return compile_and_compare(c);
  } catch (const json::exception& e) {
    throw UserError(std::string("graph_difference: a field is malformed: ") + e.what());
  }
}

}  // namespace braintrace::testing
