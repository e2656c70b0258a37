// SPDX-License-Identifier: Apache-2.0
// The picture of a program: one node per op.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ir/print.h"
#include "braintrace/view/code_template_impl.h"
#include "braintrace/view/dot.h"
#include "braintrace/view/dot_impl.h"
#include "braintrace/view/step_names.h"

namespace braintrace {
namespace {

using internal::dot_string;

std::string_view look_of(const Node& n) {
  if (n.op->etp)
    return "shape=box, style=\"filled,bold\", color=\"#0969da\", "
           "fillcolor=\"#ddf4ff\", class=\"op etp\"";
  if (has(n.op->traits, Trait::constant)) return "shape=plaintext, class=\"op constant\"";
  if (has(n.op->traits, Trait::region))
    return "shape=box3d, style=filled, fillcolor=\"#fff8c5\", class=\"op region\"";
  return "shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", class=\"op\"";
}

// Short attributes only; sub-graphs and arrays would hide the picture.
std::string attribute_text(const Node& n) {
  constexpr std::size_t kLongest = 24;
  std::string text;
  for (const auto& [name, value] : n.attrs.entries()) {
    const AttrKind kind = kind_of(value);
    const bool small_array =
        kind == AttrKind::array && std::get<Array>(value).size() <= 4;
    const bool long_list =
        kind == AttrKind::indices && std::get<IndexList>(value).size() > 8;
    if (kind == AttrKind::graph || long_list || (kind == AttrKind::array && !small_array))
      continue;
    const std::string shown = print(value);
    if (shown.size() <= kLongest) text += fmt::format("\n{}={}", name, shown);
  }
  return text;
}

std::string label_of(const Graph& g, const Node& n) {
  if (has(n.op->traits, Trait::constant))
    return internal::attribute_code(*n.attrs.find("value"));
  return node_name(g, n) + attribute_text(n);
}

std::string input_node(ValueId v, const std::string& name, const Type& type) {
  return fmt::format(
      "  {} [label={}, shape=ellipse, style=filled, fillcolor=\"#e6f6ea\", "
      "color=\"#1a7f37\", class=\"input\"];\n",
      dot_string(fmt::format("v{}", v.index)), dot_string(name + "\n" + to_string(type)));
}

std::string program(const Graph& g, const view::StepNames& names) {
  std::string text = internal::dot_head("rankdir=TB, ranksep=0.35, nodesep=0.25");
  std::vector<std::string> origin(g.num_values());
  for (ValueId v : g.inputs()) {
    const auto it = names.entry.find(v);
    const std::string name =
        it == names.entry.end() ? fmt::format("%{}", v.index) : it->second;
    text += input_node(v, name, g.type(v));
    origin[v.index] = fmt::format("v{}", v.index);
  }
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& n = g.nodes()[i];
    const std::string id = fmt::format("n{}", i);
    for (ValueId v : n.outputs) origin[v.index] = id;
    text +=
        fmt::format("  {} [label={}, {}, tooltip={}];\n", dot_string(id),
                    dot_string(label_of(g, n)), look_of(n), dot_string(to_string(n.loc)));
    for (ValueId v : n.inputs)
      text += fmt::format("  {} -> {} [label={}];\n", dot_string(origin[v.index]),
                          dot_string(id), dot_string(to_string(g.type(v))));
  }
  std::size_t position = 0;
  for (ValueId v : g.outputs()) {
    const std::string id = fmt::format("out{}", position);
    const auto it = names.exit.find(v);
    const bool named = it != names.exit.end();
    ++position;
    // A step hands unchanged states through; drawing these says nothing.
    if (!named && !names.exit.empty()) continue;
    text += fmt::format(
        "  {} [label={}, shape=ellipse, style=filled, fillcolor=\"#fbefff\", "
        "color=\"#8250df\", class=\"output\"];\n  {} -> {} [label={}];\n",
        dot_string(id),
        dot_string(named ? it->second : fmt::format("out {}", position - 1)),
        dot_string(origin[v.index]), dot_string(id), dot_string(to_string(g.type(v))));
  }
  return text + "}\n";
}

}  // namespace

std::string to_dot(const Graph& g) { return program(g, {}); }

std::string to_dot(const StepModel& step) {
  return program(step.program, view::step_names(step));
}

}  // namespace braintrace
