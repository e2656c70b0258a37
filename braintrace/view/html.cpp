// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/html.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/report.h"
#include "braintrace/view/code.h"
#include "braintrace/view/dot.h"
#include "braintrace/view/equations.h"
#include "braintrace/view/html_impl.h"
#include "braintrace/view/html_parts_impl.h"
#include "braintrace/view/program_text.h"
#include "braintrace/view/svg.h"

namespace braintrace {
namespace {

using internal::card;
using internal::code;
using internal::esc;
using internal::render;
using internal::row;
using internal::Tab;
using internal::Table;
using internal::tag;

std::string codes(const std::vector<Path>& paths) {
  std::vector<std::string> out;
  for (const Path& p : paths) out.push_back(code(to_slashes(p)));
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string group_tags(const std::vector<std::int64_t>& groups) {
  std::vector<std::string> out;
  for (std::int64_t i : groups) out.push_back(tag("group", fmt::format("group {}", i)));
  return fmt::format("{}", fmt::join(out, " "));
}

std::string chip(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("<span class=\"chip\"><b>{}</b>{}</span>\n", count,
                     count == 1 ? one : many);
}

std::string head_part(const ETraceGraph& g, const HtmlOptions& options) {
  const CompilationReport report(g);
  std::string text = fmt::format(
      "<header><h1>{}</h1>\n<p class=\"lead\">{}</p>\n<div class=\"chips\">\n",
      esc(options.title),
      options.log ? "A training run: what was learned, by which rule, and how good its "
                    "gradients are."
                  : "What the compiler found in one step of the model: which weights "
                    "reach which hidden states, and how.");
  text += chip(g.hidden_groups.size(), "hidden group", "hidden groups");
  text += chip(g.hidden_param_op_relations.size(), "relation", "relations");
  std::map<Verdict, std::size_t> counts;
  for (const ParameterVerdict& v : g.verdicts) ++counts[v.verdict];
  for (const auto& [verdict, count] : counts)
    text += fmt::format("<span class=\"chip\"><b>{}</b>{}</span>\n", count,
                        tag(to_string(verdict), to_string(verdict)));
  text += chip(report.counts.at("warnings"), "warning", "warnings");
  text += chip(report.counts.at("errors"), "error", "errors");
  return text + "</div></header>\n";
}

std::string stage(const std::string& id, const std::string& dot) {
  return fmt::format("<div class=\"stage\" id=\"{}\">{}</div>\n", id,
                     dot_to_inline_svg(dot, id + "_"));
}

std::string zoom_buttons(std::string_view id) {
  return fmt::format(
      "<button data-for=\"{0}\" value=\"out\" title=\"zoom out\">-</button>"
      "<button data-for=\"{0}\" value=\"in\" title=\"zoom in\">+</button>"
      "<button data-for=\"{0}\" value=\"all\">whole</button>"
      "<button data-for=\"{0}\" value=\"start\">reset</button>",
      id);
}

// What stands at the pointer over a relation: its equations and the size of its traces.
std::vector<std::string> relation_notes(const ETraceGraph& g,
                                        const HtmlOptions& options) {
  std::vector<std::string> notes(g.hidden_param_op_relations.size());
  if (!options.algorithm) return notes;
  const std::vector<RelationEquations> equations =
      update_equations(g, *options.algorithm);
  for (std::size_t i = 0; i < equations.size(); ++i) {
    notes[i] = fmt::format("{}\ngradient: {}", fmt::join(equations[i].recursion, "\n"),
                           equations[i].gradient);
    std::int64_t bytes = 0;
    if (!options.memory.empty())
      for (const MemoryItem& item : options.memory.front().items)
        if (item.relation == static_cast<std::int64_t>(i)) bytes += item.bytes;
    if (bytes > 0) notes[i] += "\ntraces: " + bytes_text(bytes);
  }
  return notes;
}

std::string picture_part(const ETraceGraph& g, const HtmlOptions& options) {
  return card(
      "Picture",
      "<div class=\"bar\"><span class=\"key\"><i class=\"group\"></i>hidden group</span>"
      "<span class=\"key\"><i class=\"direct\"></i>direct: traced position by "
      "position</span><span class=\"key\"><i class=\"dense\"></i>dense: traced in "
      "full</span><span class=\"key\"><i class=\"local\"></i>no trace</span>"
      "<span class=\"key\"><i class=\"cut\"></i>past credit is cut</span>"
      "<span class=\"push\">drag to move, ctrl + wheel to zoom " +
          zoom_buttons("graph") + "</span></div>\n" +
          stage("graph", to_dot(g, relation_notes(g, options))));
}

std::string verdict_part(const ETraceGraph& g) {
  Table t{{"parameter", "verdict", "reason"}, {}};
  for (const ParameterVerdict& v : g.verdicts)
    t.rows.push_back(
        row({code(to_slashes(v.path)), tag(to_string(v.verdict), to_string(v.verdict)),
             esc(v.reason)}));
  return card("Every parameter has one verdict",
              render(t, "The model has no parameter."));
}

std::string groups_part(const ETraceGraph& g) {
  Table t{{"group", "hidden states", "positions", "states", "recurrence"}, {}};
  for (const HiddenGroup& group : g.hidden_groups)
    t.rows.push_back(
        row({group_tags({group.index}), codes(group.hidden_paths()),
             code(to_string(group.varshape())), fmt::format("{}", group.num_state()),
             group.has_recurrence ? "position by position" : "none is kept"}));
  return card("Hidden groups", render(t, "The model has no hidden state."));
}

std::string relations_part(const ETraceGraph& g) {
  Table t{{"weight", "op", "kind", "groups", "paths to the hidden states", "reason"}, {}};
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    const std::string kind = r.kind == RelationKind::dense ? "dense" : "direct";
    std::vector<std::string> paths;
    for (const auto& [path, how] : r.path_classification)
      paths.push_back(code(to_slashes(path)) + " " + esc(to_string(how)));
    t.rows.push_back(row({code(to_slashes(r.path())), code(r.primitive), tag(kind, kind),
                          group_tags(r.group_indices),
                          fmt::format("{}", fmt::join(paths, "<br>")), esc(r.reason)}));
  }
  return card("Relations: weight, op, hidden group", render(t, "No weight is traced."));
}

std::string exclusions_part(const ETraceGraph& g) {
  Table t{{"parameter", "excluded because"}, {}};
  for (const auto& w : CompilationReport(g).excluded_weights)
    t.rows.push_back(row({code(to_slashes(w.path)),
                          w.reason.empty() ? "used by plain ops only" : code(w.reason)}));
  return card("Parameters without a trace",
              render(t, "None: every parameter is traced."));
}

// Hidden states first, then the parameters whose own past stops.
std::vector<Path> past_of(const CutEntry& c) {
  std::vector<Path> paths = c.from;
  paths.insert(paths.end(), c.weights.begin(), c.weights.end());
  return paths;
}

std::string cuts_part(const ETraceGraph& g) {
  Table t{{"op", "at", "the past of", "is not credited to"}, {}};
  for (const CutEntry& c :
       cut_set(g.module_info, g.hidden_groups, g.hidden_param_op_relations))
    t.rows.push_back(
        row({code(c.op) + (c.weight_path ? " " + code(to_slashes(*c.weight_path)) : ""),
             esc(c.where), codes(past_of(c)), codes(c.to)}));
  return card("Cut set: where past credit stops", render(t, "Nothing is cut."));
}

std::string filters(const std::vector<CompilationRecord>& records) {
  std::map<std::string_view, int> kinds;
  for (const CompilationRecord& r : records) ++kinds[to_string(r.kind)];
  std::string text =
      "<div class=\"bar\"><label>kind <select id=\"kind\"><option value=\"\">all"
      "</option>";
  for (const auto& [kind, count] : kinds)
    text += fmt::format("<option value=\"{0}\">{0} ({1})</option>", kind, count);
  text += "</select></label>";
  for (const auto level :
       {DiagnosticLevel::info, DiagnosticLevel::warning, DiagnosticLevel::error})
    text += fmt::format(
        "<label><input type=\"checkbox\" data-level=\"{0}\" checked> {0}</label>",
        to_string(level));
  return text +
         "<input type=\"search\" id=\"find\" placeholder=\"find in the records\" "
         "aria-label=\"find in the records\"><span class=\"push\" id=\"count\"></span>"
         "</div>\n";
}

std::string diagnostics_part(const ETraceGraph& g) {
  Table t{{"level", "kind", "weight", "message"}, {}};
  for (const CompilationRecord& r : g.diagnostics)
    t.rows.push_back(
        row({tag(to_string(r.level), to_string(r.level)), code(to_string(r.kind)),
             r.weight_path ? code(to_slashes(*r.weight_path)) : "", esc(r.message)},
            fmt::format(" data-kind=\"{}\" data-level=\"{}\"", to_string(r.kind),
                        to_string(r.level))));
  return card("Diagnostics", (t.rows.empty() ? "" : filters(g.diagnostics)) +
                                 render(t, "The compiler recorded nothing."));
}

std::string program_part(const ETraceGraph& g, const HtmlOptions& options) {
  const StepModel& step = g.module_info.step;
  std::string text = fmt::format(
      "<details open><summary>as code</summary><pre>{}</pre></details>\n"
      "<details><summary>as program text, {} nodes</summary><pre>{}</pre></details>\n",
      esc(to_code(step)), step.program.nodes().size(), esc(program_text(step)));
  if (step.program.nodes().size() <= options.max_program_nodes)
    text +=
        "<details><summary>as a picture</summary><div class=\"bar\"><span "
        "class=\"push\">" +
        zoom_buttons("program") + "</span></div>" + stage("program", to_dot(step)) +
        "</details>\n";
  return card("The step", text);
}

std::vector<Tab> tabs_of(const ETraceGraph& g, const HtmlOptions& o) {
  std::vector<Tab> tabs;
  if (o.log) tabs.push_back({"run", "Run", internal::run_part(*o.log)});
  tabs.push_back({"model", "Graph",
                  picture_part(g, o) + verdict_part(g) + groups_part(g) +
                      relations_part(g) + exclusions_part(g) + cuts_part(g)});
  if (o.algorithm)
    tabs.push_back({"rule", "Equations", internal::equations_part(g, *o.algorithm)});
  if (!o.memory.empty())
    tabs.push_back({"memory", "Memory", internal::memory_part(o.memory)});
  if (o.certificate)
    tabs.push_back(
        {"certificate", "Certificate", internal::certificate_part(*o.certificate)});
  tabs.push_back({"records", "Diagnostics", diagnostics_part(g)});
  tabs.push_back({"step", "Program", program_part(g, o)});
  return tabs;
}

// Without scripts every tab is seen, one below the other.
std::string tabs_part(const std::vector<Tab>& tabs) {
  std::string head = "<nav class=\"tabs\" role=\"tablist\">\n", body;
  for (const Tab& t : tabs) {
    head += fmt::format("<button role=\"tab\" data-tab=\"{}\">{}</button>\n", t.id,
                        esc(t.title));
    body += fmt::format("<div class=\"tab\" id=\"tab-{}\" role=\"tabpanel\">\n{}</div>\n",
                        t.id, t.body);
  }
  return head + "</nav>\n" + body;
}

}  // namespace

std::string to_html(const ETraceGraph& g, const HtmlOptions& options) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
      esc(options.title), internal::page_style());
  text +=
      head_part(g, options) + "<main>\n" + tabs_part(tabs_of(g, options)) + "</main>\n";
  text +=
      "<footer>Written by braintrace. This page loads nothing from elsewhere."
      "</footer>\n";
  return text +
         fmt::format("<script>{}</script>\n</body>\n</html>\n", internal::page_script());
}

}  // namespace braintrace
