// SPDX-License-Identifier: Apache-2.0
// Parts of the page that come from a run: curves, spikes, memory, equations, certificate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/view/chart.h"
#include "braintrace/view/equations.h"
#include "braintrace/view/html_impl.h"
#include "braintrace/view/html_parts_impl.h"

namespace braintrace::internal {

std::string esc(std::string_view text) { return html_escape(text); }
std::string code(std::string_view text) { return "<code>" + esc(text) + "</code>"; }

std::string tag(std::string_view look, std::string_view text) {
  return fmt::format("<span class=\"tag {}\">{}</span>", look, esc(text));
}

std::string row(const std::vector<std::string>& cells, std::string_view attributes) {
  std::string text = fmt::format("<tr{}>", attributes);
  for (const std::string& c : cells) text += "<td>" + c + "</td>";
  return text + "</tr>\n";
}

std::string render(const Table& t, std::string_view when_empty) {
  if (t.rows.empty()) return fmt::format("<p class=\"empty\">{}</p>\n", esc(when_empty));
  std::string text = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& h : t.head) text += "<th>" + esc(h) + "</th>";
  text += "</tr></thead><tbody>\n";
  for (const std::string& r : t.rows) text += r;
  return text + "</tbody></table></div>\n";
}

std::string card(std::string_view heading, const std::string& body) {
  return fmt::format("<section class=\"card\"><h2>{}</h2>\n{}</section>\n", esc(heading),
                     body);
}

namespace {

using Points = std::vector<std::pair<double, double>>;

template <class Get>
Points points_of(const std::vector<RunPoint>& points, const Get& get) {
  Points out;
  for (const RunPoint& p : points)
    if (const std::optional<double> y = get(p))
      out.emplace_back(static_cast<double>(p.update), *y);
  return out;
}

std::string facts_table(const RunLog& log) {
  Table t{{"", ""}, {}};
  for (const auto& [name, value] : log.facts)
    t.rows.push_back(row({esc(name), esc(value)}));
  return t.rows.empty() ? "" : render(t, "");
}

std::string share_chart(const RunLog& log, const char* name,
                        std::optional<double> RunPoint::*field,
                        std::optional<double> level) {
  const Points points =
      points_of(log.evaluations, [&](const RunPoint& p) { return p.*field; });
  if (points.empty()) return "";
  ChartOptions o{.title = name, .x_name = "batch", .y_name = name, .percent = true};
  o.height = 240;
  if (level) o.level = ChartLevel{"best constant", *level};
  return line_chart({{name, points}}, o);
}

}  // namespace

std::string run_part(const RunLog& log) {
  const auto loss = [](const RunPoint& p) { return std::optional(p.loss); };
  std::string curves =
      line_chart({{"training", points_of(log.training, loss)},
                  {"test", points_of(log.evaluations, loss)}},
                 {.title = "loss",
                  .x_name = "batch",
                  .y_name = "loss",
                  .log_y = true,
                  .level = ChartLevel{"best constant", log.constant_loss}});
  curves += share_chart(log, "accuracy", &RunPoint::accuracy, log.constant_accuracy);
  curves += share_chart(log, "units that fire in a step", &RunPoint::firing_rate, {});
  std::string text = card("The run", facts_table(log)) +
                     card("Curves", "<div class=\"charts\">" + curves + "</div>\n");
  std::string spikes;
  for (const SpikeRaster& r : log.rasters) spikes += raster_chart(r);
  if (!spikes.empty())
    text += card("Spikes", "<div class=\"charts\">" + spikes + "</div>\n");
  return text;
}

std::string memory_part(const std::vector<MemoryPlan>& plans) {
  if (plans.empty()) return "";
  const MemoryPlan& own = plans.front();
  Table items{{"kind", "of", "array", "bytes"}, {}};
  for (const MemoryItem& i : own.items)
    items.rows.push_back(
        row({tag("local", i.kind), code(i.key.empty() ? i.owner : i.owner + "/" + i.key),
             code(fmt::format("{}[{}]", i.dtype, fmt::join(i.shape, ","))),
             bytes_text(i.bytes)}));
  Table others{{"rule", "bytes", ""}, {}};
  std::int64_t most = 1;
  for (const MemoryPlan& p : plans) most = std::max(most, p.total_bytes());
  for (const MemoryPlan& p : plans)
    others.rows.push_back(
        row({code(p.algorithm), bytes_text(p.total_bytes()),
             fmt::format("<i class=\"meter\" style=\"width:{:.1f}%\"></i>",
                         100.0 * static_cast<double>(p.total_bytes()) /
                             static_cast<double>(most))}));
  return card(fmt::format("Memory plan: {} keeps {}", own.algorithm,
                          bytes_text(own.total_bytes())),
              render(items, "Nothing is carried from step to step.")) +
         card("The same model with other rules", render(others, ""));
}

std::string equations_part(const ETraceGraph& g, const Algorithm& algorithm) {
  Table t{{"weight", "op", "kind", "trace", "gradient of the step"}, {}};
  for (const RelationEquations& e : update_equations(g, algorithm)) {
    std::vector<std::string> lines;
    for (const std::string& l : e.recursion) lines.push_back(code(l));
    t.rows.push_back(
        row({code(e.weight), code(e.op), tag(e.kind, e.kind),
             fmt::format("{}", fmt::join(lines, "<br>")), code(e.gradient)}));
  }
  std::string legend = "<ul>";
  for (const std::string& l : equation_legend(algorithm))
    legend += "<li>" + esc(l) + "</li>";
  return card("What " + algorithm.name + " computes",
              render(t, "This rule has no traces.") + legend + "</ul>\n");
}

namespace {

std::string look_of(const std::string& verdict) {
  if (verdict == "exact") return "group";
  if (verdict == "approximate") return "direct";
  return verdict;
}

}  // namespace

std::string certificate_part(const CertificateData& c) {
  Table t{{"parameter", "verdict", "cosine", "error", "|bptt|", "because"}, {}};
  for (const CertificateRow& r : c.rows)
    t.rows.push_back(row({code(r.parameter), tag(look_of(r.verdict), r.verdict),
                          fmt::format("{:.4f}", r.cosine), fmt::format("{:.1e}", r.error),
                          fmt::format("{:.2e}", r.bptt_norm), esc(r.because)}));
  Table s{{"state", "largest", "change", "firing"}, {}};
  for (const CertificateState& x : c.states)
    s.rows.push_back(row({code(x.state), fmt::format("{:.2e}", x.largest),
                          fmt::format("{:.2e}", x.change),
                          x.rate ? fmt::format("{:.2f} %", 100 * *x.rate) : ""}));
  std::string warnings;
  for (const std::string& w : c.warnings)
    warnings += "<p>" + tag("warning", "warning") + " " + esc(w) + "</p>\n";
  return card("Certificate",
              fmt::format("<p class=\"lead\">{}, history {}, against back-propagation "
                          "through {} steps, in windows of {}: cosine {:.4f}, relative "
                          "error {:.1e}.</p>\n",
                          esc(c.algorithm), esc(c.history), c.steps, c.window, c.cosine,
                          c.error) +
                  warnings + render(t, "There is no parameter.")) +
         card("Signs of life", render(s, "There is no hidden state."));
}

}  // namespace braintrace::internal
