// SPDX-License-Identifier: Apache-2.0
// The picture of a compiled graph.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/view/dot.h"
#include "braintrace/view/dot_impl.h"
#include "braintrace/view/html_impl.h"

namespace braintrace {
namespace {

using internal::dot_string;
using internal::html_escape;
using internal::wrapped;

constexpr std::size_t kReasonWidth = 46, kNoteWidth = 34;

struct Look {
  std::string_view style, color, fill;
};

Look look_of(Verdict v) {
  switch (v) {
    case Verdict::direct:
      return {"filled", "#0969da", "#ddf4ff"};
    case Verdict::dense:
      return {"filled,bold", "#bc4c00", "#fff1e5"};
    case Verdict::local:
      return {"filled,dashed", "#6e7781", "#f6f8fa"};
    case Verdict::refused:
      return {"filled,dashed", "#cf222e", "#ffebe9"};
  }
  return {"filled", "#57606a", "#ffffff"};
}

std::string hidden_id(const Path& p) { return dot_string("h:" + to_slashes(p)); }
std::string weight_id(const Path& p) { return dot_string("w:" + to_slashes(p)); }

std::string shape_text(const Shape& s) { return fmt::format("{}", fmt::join(s, " x ")); }

// Ops at which the past of a group stops, by the group that lies beyond.
using Cuts = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::string>>;

Cuts cuts_between_groups(const ETraceGraph& g) {
  Cuts cuts;
  for (const CutEntry& c :
       cut_set(g.module_info, g.hidden_groups, g.hidden_param_op_relations)) {
    const std::string op = c.weight_path ? to_slashes(*c.weight_path) : c.op;
    for (const Path& from : c.from) {
      for (const Path& to : c.to) {
        const auto a = g.hid_path_to_group.find(from), b = g.hid_path_to_group.find(to);
        if (a == g.hid_path_to_group.end() || b == g.hid_path_to_group.end()) continue;
        auto& ops = cuts[{a->second, b->second}];
        if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
      }
    }
  }
  return cuts;
}

std::string first_few(const std::vector<std::string>& ops) {
  constexpr std::size_t kShown = 3;
  const auto end =
      ops.begin() + static_cast<std::ptrdiff_t>(std::min(ops.size(), kShown));
  std::string text = fmt::format("{}", fmt::join(ops.begin(), end, ", "));
  return ops.size() > kShown ? fmt::format("{}, +{}", text, ops.size() - kShown) : text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string group_label(const HiddenGroup& g, const Cuts& cuts) {
  const std::string size = g.varshape().empty() ? "scalar" : shape_text(g.varshape());
  std::string label = fmt::format("group {} · {}", g.index, size);
  if (g.num_state() > 1) label += fmt::format(" · {} states", g.num_state());
  if (g.has_recurrence) label += " · recurrent";
  for (const auto& [ends, ops] : cuts) {
    if (ends.first != g.index) continue;
    const std::string beyond =
        ends.second == g.index ? "" : fmt::format(" to group {}", ends.second);
    const std::string note = fmt::format("cut{} at {}", beyond, first_few(ops));
    for (const std::string& line : lines_of(wrapped(note, kNoteWidth)))
      label += fmt::format(
          "<br align=\"left\"/><font point-size=\"9\" color=\"#cf222e\">{}</font>",
          html_escape(line));
  }
  return "<" + label + "<br align=\"left\"/>>";
}

std::string group_cluster(const HiddenGroup& g, const Cuts& cuts) {
  std::string text = fmt::format(
      "  subgraph cluster_group_{} {{\n"
      "    label={}; class=\"group\"; style=\"rounded,filled\"; color=\"#1a7f37\"; "
      "fillcolor=\"#e6f6ea\"; fontcolor=\"#1a7f37\"; labeljust=l;\n",
      g.index, group_label(g, cuts));
  for (const HiddenVar& h : g.members)
    text += fmt::format(
        "    {} [label={}, class=\"hidden\", shape=ellipse, style=filled, "
        "color=\"#1a7f37\", fillcolor=\"#ffffff\"];\n",
        hidden_id(h.path), dot_string(to_slashes(h.path)));
  return text + "  }\n";
}

std::string weight_types(const ETraceGraph& g, const Path& path) {
  std::vector<std::string> texts;
  for (const WeightVar& w : g.module_info.weights) {
    if (w.path != path) continue;
    const std::string shape = shape_text(g.module_info.program().type(w.id).shape);
    const bool main = w.key.empty() || w.key == "weight";
    texts.insert(main ? texts.begin() : texts.end(), main ? shape : w.key + " " + shape);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

bool is_traced(const ParameterVerdict& v) {
  return v.verdict == Verdict::direct || v.verdict == Verdict::dense;
}

// Ops at which the past of a parameter stops although no group's past does: those are
// marked at the group.
using WeightCuts = std::map<Path, std::vector<std::string>>;

WeightCuts cuts_of_weights(const ETraceGraph& g) {
  WeightCuts cuts;
  for (const CutEntry& c :
       cut_set(g.module_info, g.hidden_groups, g.hidden_param_op_relations))
    if (c.from.empty())
      for (const Path& weight : c.weights) cuts[weight].push_back(c.op);
  return cuts;
}

std::string weight_node(const ETraceGraph& g, const ParameterVerdict& v,
                        const WeightCuts& cuts) {
  const Look look = look_of(v.verdict);
  std::string label = to_slashes(v.path);
  if (const std::string types = weight_types(g, v.path); !types.empty())
    label += "\n" + types;  // a parameter the step does not use has none
  if (!is_traced(v))
    label +=
        fmt::format("\n{}: {}", to_string(v.verdict), wrapped(v.reason, kReasonWidth));
  if (const auto it = cuts.find(v.path); it != cuts.end())
    label += "\npast cut at " + first_few(it->second);
  return fmt::format(
      "  {} [label={}, class=\"weight {}\", shape=box, style={}, color=\"{}\", "
      "fillcolor=\"{}\", tooltip={}];\n",
      weight_id(v.path), dot_string(label), to_string(v.verdict), dot_string(look.style),
      look.color, look.fill, dot_string(v.reason));
}

// All hidden states stand in one column, right of the weights.
std::string hidden_column(const ETraceGraph& g) {
  if (g.hidden_groups.empty()) return "";
  std::string text = "  { rank=same;";
  for (const HiddenGroup& group : g.hidden_groups)
    for (const HiddenVar& h : group.members) text += " " + hidden_id(h.path) + ";";
  return text + " }\n";
}

std::vector<Path> parameters_of(const HiddenParamOpRelation& r) {
  std::vector<Path> paths;
  for (const Trainable& t : r.trainables)
    for (const WeightVar& w : t.prologue.parameters)
      if (std::find(paths.begin(), paths.end(), w.path) == paths.end())
        paths.push_back(w.path);
  return paths;
}

// With room around it, so that a thick edge does not touch the letters.
std::string padded_label(std::string_view text) {
  return fmt::format(
      "<<table border=\"0\" cellpadding=\"3\"><tr><td>{}</td></tr></table>>",
      html_escape(text));
}

std::string relation_edges(const ETraceGraph& g, const HiddenParamOpRelation& r,
                           const std::string& note) {
  const bool dense = r.kind == RelationKind::dense;
  std::string tooltip = r.reason.empty() ? "traced position by position" : r.reason;
  if (!note.empty()) tooltip = r.primitive + ": " + tooltip + "\n" + note;
  std::string text;
  for (const Path& source : parameters_of(r))
    for (std::int64_t i : r.group_indices)
      text += fmt::format(
          "  {} -> {} [lhead=cluster_group_{}, class=\"relation {}\", label={}, "
          "color=\"{}\", fontcolor=\"{}\", penwidth={}, tooltip={}];\n",
          weight_id(source),
          hidden_id(g.hidden_groups[static_cast<std::size_t>(i)].members.front().path), i,
          dense ? "dense" : "direct",
          padded_label(r.primitive + (dense ? " (dense)" : "")),
          dense ? "#bc4c00" : "#0969da", dense ? "#bc4c00" : "#0969da",
          dense ? "2.6" : "1.3", dot_string(tooltip));
  return text;
}

std::string cut_edges(const ETraceGraph& g, const Cuts& cuts) {
  const auto end = [&](std::int64_t i) {
    return hidden_id(g.hidden_groups[static_cast<std::size_t>(i)].members.front().path);
  };
  std::string text;
  for (const auto& [ends, ops] : cuts) {
    // From border to border, clear of the labels; a loop stays inside.
    const std::string borders = ends.first == ends.second
                                    ? ""
                                    : fmt::format(
                                          "ltail=cluster_group_{}, "
                                          "lhead=cluster_group_{}, ",
                                          ends.first, ends.second);
    text += fmt::format(
        "  {} -> {} [{}class=\"cut\", arrowhead=tee, style=dotted, "
        "color=\"#cf222e\", penwidth=1.4, constraint=false, tooltip={}];\n",
        end(ends.first), end(ends.second), borders,
        dot_string("past credit stops at " + first_few(ops)));
  }
  return text;
}

// Traced parameters in program order, each once.
std::vector<const ParameterVerdict*> traced_in_order(const ETraceGraph& g) {
  std::vector<const ParameterVerdict*> out;
  const auto add = [&](const Path& path) {
    for (const ParameterVerdict& v : g.verdicts)
      if (v.path == path && std::find(out.begin(), out.end(), &v) == out.end())
        out.push_back(&v);
  };
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations)
    for (const Path& path : parameters_of(r)) add(path);
  for (const ParameterVerdict& v : g.verdicts)
    if (is_traced(v)) add(v.path);
  return out;
}

std::string untraced_cluster(const ETraceGraph& g) {
  std::string nodes;
  for (const ParameterVerdict& v : g.verdicts)
    if (!is_traced(v)) nodes += "  " + weight_node(g, v, {});
  if (nodes.empty()) return "";
  return "  subgraph cluster_untraced {\n"
         "    label=\"without a trace\"; class=\"untraced\"; style=\"rounded,dashed\"; "
         "color=\"#6e7781\"; fontcolor=\"#6e7781\"; labeljust=l;\n" +
         nodes + "  }\n";
}

}  // namespace

// Graphviz stacks what stands first in the text at the bottom, so everything is written
// in reverse: the first group ends up on top.
std::string to_dot(const ETraceGraph& g, const std::vector<std::string>& notes) {
  std::string text = internal::dot_head(
      "rankdir=LR, compound=true, ranksep=1.1, nodesep=0.22, newrank=true");
  text += untraced_cluster(g);
  const std::vector<const ParameterVerdict*> traced = traced_in_order(g);
  const WeightCuts weight_cuts = cuts_of_weights(g);
  for (auto it = traced.rbegin(); it != traced.rend(); ++it)
    text += weight_node(g, **it, weight_cuts);
  const Cuts cuts = cuts_between_groups(g);
  for (auto it = g.hidden_groups.rbegin(); it != g.hidden_groups.rend(); ++it)
    text += group_cluster(*it, cuts);
  for (std::size_t i = 0; i < g.hidden_param_op_relations.size(); ++i)
    text += relation_edges(g, g.hidden_param_op_relations[i],
                           i < notes.size() ? notes[i] : "");
  return text + cut_edges(g, cuts) + hidden_column(g) + "}\n";
}

}  // namespace braintrace
