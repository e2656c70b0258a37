// SPDX-License-Identifier: Apache-2.0
// `braintrace show`: compiles a model and draws what the compiler found.
#include <memory>

#include "command.h"
#include "model_source.h"
#include "output.h"
#include "run_request.h"
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

struct ShowRequest {
  ModelRequest model;
  bool compat = false;
  std::vector<std::string> set;  // name=value
  int verbose = 1;
  std::string format = "text", out;
  std::string what = "graph";  // dot and svg: graph or program
};

constexpr const char* kShowFooter =
    "Examples:\n"
    "  braintrace show --model single_rnn\n"
    "  braintrace show --model gru --hidden 64 --n-in 3 --json\n"
    "  braintrace show --model two_layer_gru --compat --verbose 2\n"
    "  braintrace show --model conv_rnn --format html --out conv_rnn.html\n"
    "  braintrace show --model my_model.json --set weight_paths=local --format svg\n";

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

CompileOptions options_of(const ShowRequest& request, bool batched) {
  CompileOptions options;
  options.batched = batched;
  if (request.compat) options = compat(options);
  for (const auto& [name, value] : named_values("--set", request.set))
    set_option(options, name, value);
  return options;
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
  return to_html(g, {.title = model.title + (request.compat ? " (compat)" : "")});
}

// What cannot be loaded is wrong use; what cannot be compiled failed.
void run(const ShowRequest& request) {
  require_writable(request.out);
  const LoadedModel model = load_model(request.model);
  const CompileOptions options = options_of(request, model.batched);
  std::string text;
  try {
    text = show(model, options, request);
  } catch (const UserError& e) {
    throw UserError(ErrorKind::compilation, e.what());
  }
  write_text(text, request.out);
}

}  // namespace

Command add_show(CLI::App& app) {
  auto r = std::make_shared<ShowRequest>();
  CLI::App* c = app.add_subcommand("show", "compile a model and show its graph");
  c->footer(kShowFooter);
  c->fallthrough();
  add_model_options(*c, r->model);
  c->get_option("--model")->required();
  c->add_flag("--compat", r->compat, "what braintrace 0.2.6 finds, quirks included");
  c->add_option("--set", r->set, "a compile option, name=value (repeatable)");
  c->add_option("--verbose", r->verbose, "0 one line, 1 summary, 2 with warnings")
      ->check(whole_number(0, 2))
      ->capture_default_str();
  c->add_option("--format", r->format, "text, code, ir, dot, svg, html or json")
      ->check(one_of({"text", "code", "ir", "dot", "svg", "html", "json"}))
      ->capture_default_str();
  c->add_option("--what", r->what, "dot and svg: the graph, or the program")
      ->check(one_of({"graph", "program"}))
      ->capture_default_str();
  c->add_flag(
       "--json", [r](std::int64_t) { r->format = "json"; }, "as --format json")
      ->excludes("--format");
  c->add_option("--out", r->out, "write to this file instead of the terminal")
      ->check(file_name());
  return {c, [r] { run(*r); }};
}

}  // namespace braintrace::cli
