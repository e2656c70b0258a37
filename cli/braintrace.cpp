// SPDX-License-Identifier: Apache-2.0
// The program `braintrace`. Exit codes: 0 done, 1 failed, 2 wrong use (also an unknown
// model or format).
#include <fstream>

#include "bench.h"
#include "show.h"
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "braintrace/base/error.h"

using namespace braintrace;

namespace {

constexpr int kFailed = 1, kWrongUse = 2;

constexpr const char* kExamples =
    "Examples:\n"
    "  braintrace show --model single_rnn\n"
    "  braintrace show --model two_layer_gru --compat --verbose 2\n"
    "  braintrace show --model conv_rnn --format html --out conv_rnn.html\n"
    "  braintrace show --model my_model.json --set weight_paths=local --format svg\n"
    "  braintrace bench --model gru --n-rec 256 --batch 16 --algorithm d_rtrl\n";

void add_show(CLI::App& app, cli::ShowRequest& request, std::string& out) {
  CLI::App* show = app.add_subcommand("show", "compile a model and show its graph");
  show->footer(kExamples);
  show->add_option("--model", request.model.model,
                   "kind of the registry, or a JSON file with a model or a recorded run")
      ->required();
  show->add_option("--input", request.model.inputs,
                   "shape of an input without batch, e.g. 1,28,28 (repeatable)")
      ->delimiter(' ');
  show->add_option("--batch", request.model.batch, "compile for a batch of this size")
      ->check(CLI::Range(1, 1 << 20));
  show->add_flag("--compat", request.compat,
                 "what braintrace 0.2.6 finds, quirks included");
  show->add_option("--set", request.set, "a compile option, name=value (repeatable)");
  show->add_option("--verbose", request.verbose, "0 one line, 1 summary, 2 with warnings")
      ->check(CLI::Range(0, 2));
  show->add_option("--format", request.format, "text, code, ir, dot, svg, html or json")
      ->check(CLI::IsMember(cli::show_formats()));
  show->add_option("--what", request.what, "dot and svg: the graph, or the program")
      ->check(CLI::IsMember({"graph", "program"}));
  show->add_option("--out", out, "write to this file instead of the terminal");
}

void write(const std::string& text, const std::string& file) {
  if (file.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    BT_REQUIRE_KIND(std::fflush(stdout) == 0, ErrorKind::runtime,
                    "cannot write to the terminal");
    return;
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  BT_REQUIRE_KIND(out, ErrorKind::runtime, fmt::format("cannot write '{}'", file));
}

int complain(int code, const std::string& message) {
  std::string line = message;
  for (char& c : line)
    if (c == '\n') c = ' ';
  fmt::print(stderr, "braintrace: {}\n", line);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Online-learning compiler for recurrent and spiking networks.",
               "braintrace");
  app.set_version_flag("--version", "braintrace " BRAINTRACE_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples);
  cli::ShowRequest request;
  std::string out;
  add_show(app, request, out);
  cli::BenchRequest bench_request;
  const CLI::App* bench = cli::add_bench(app, bench_request);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    const bool unknown = argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty();
    return complain(
        kWrongUse,
        unknown ? fmt::format("unknown command '{}'; there are: show, bench", argv[1])
                : std::string(e.what()));
  }
  if (bench->parsed()) {
    try {
      write(cli::bench(bench_request), "");
      return 0;
    } catch (const std::exception& e) {
      return complain(kFailed, e.what());
    }
  }
  cli::LoadedModel model;
  CompileOptions options;
  try {
    model = cli::load_model(request.model);
    options = cli::options_of(request, model.batched);
  } catch (const UserError& e) {
    return complain(kWrongUse, e.what());
  } catch (const std::exception& e) {
    return complain(kFailed, e.what());
  }
  try {
    write(cli::show(model, options, request), out);
    return 0;
  } catch (const std::exception& e) {
    return complain(kFailed, e.what());
  }
}
