// SPDX-License-Identifier: Apache-2.0
#include "show.h"

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/etrace/report.h"
#include "braintrace/view/code.h"
#include "braintrace/view/dot.h"
#include "braintrace/view/html.h"
#include "braintrace/view/json.h"
#include "braintrace/view/program_text.h"
#include "braintrace/view/svg.h"

namespace braintrace::cli {
namespace {

std::string text_of(const ETraceGraph& g, const ShowRequest& request) {
  const CompilationReport report(g);
  if (request.verbose == 0) return report.one_line() + "\n";
  // The reference prints its text with one more line end.
  std::string text = report.to_str(request.verbose) + "\n";
  if (!request.compat) text += report.verdict_table();
  return text;
}

std::string dot_of(const ETraceGraph& g, const ShowRequest& request) {
  return request.what == "program" ? to_dot(g.module_info.step) : to_dot(g);
}

}  // namespace

CompileOptions options_of(const ShowRequest& request, bool batched) {
  CompileOptions options;
  options.batched = batched;
  if (request.compat) options = compat(options);
  for (const std::string& pair : request.set) {
    const std::size_t equals = pair.find('=');
    BT_REQUIRE(equals != std::string::npos,
               fmt::format("--set needs name=value, got '{}'", pair));
    set_option(options, pair.substr(0, equals), pair.substr(equals + 1));
  }
  return options;
}

const std::vector<std::string>& show_formats() {
  static const std::vector<std::string> formats = {"text", "code", "ir",  "dot",
                                                   "svg",  "html", "json"};
  return formats;
}

std::string show(const LoadedModel& model, const CompileOptions& options,
                 const ShowRequest& request) {
  const ETraceGraph g = compile_etrace_graph(*model.module, model.inputs, options);
  if (request.format == "text") return text_of(g, request);
  if (request.format == "code") return to_code(g.module_info.step);
  if (request.format == "ir") return program_text(g.module_info.step);
  if (request.format == "dot") return dot_of(g, request);
  if (request.format == "svg") return dot_to_svg(dot_of(g, request));
  if (request.format == "json") return to_json(g);
  BT_REQUIRE(request.format == "html",
             fmt::format("unknown format '{}'", request.format));
  return to_html(g, {.title = model.title + (request.compat ? " (compat)" : "")});
}

}  // namespace braintrace::cli
