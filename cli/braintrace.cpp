// SPDX-License-Identifier: Apache-2.0
// The program `braintrace`. Exit codes: 0 done, 1 failed, 2 wrong use (also an unknown
// model or format).
#include <new>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "bench.h"
#include "command.h"
#include "config_file.h"
#include "output.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/base/error.h"

using namespace braintrace;

namespace {

constexpr int kFailed = 1, kWrongUse = 2;

constexpr const char* kExamples =
    "Examples:\n"
    "  braintrace train                                   a first run, in seconds\n"
    "  braintrace show --model single_rnn                 what the compiler finds\n"
    "  braintrace verify --model lif --algorithm pp_prop  certify its gradients\n"
    "  braintrace plan --model gru --hidden 256           memory of every rule\n"
    "  braintrace compare --algorithms d_rtrl,pp_prop,bptt\n"
    "  braintrace export --model gru --algorithm d_rtrl --out learner.hpp\n"
    "  braintrace bench --model gru --n-rec 256 --batch 16\n"
    "Every command: braintrace COMMAND --help. Exit codes: 0 done, 1 failed, 2 wrong "
    "use.\n";

constexpr const char* kTooLarge =
    "out of memory: model, batch or sequence are too large for this machine";

cli::Command bench_command(CLI::App& app) {
  auto r = std::make_shared<cli::BenchRequest>();
  CLI::App* c = cli::add_bench(app, *r);
  return {c, [r] { cli::write_text(cli::bench(*r)); }};
}

int complain(int code, const std::string& message) {
  std::string line = message;
  for (char& c : line)
    if (c == '\n') c = ' ';
  cli::tell(fmt::format("braintrace: {}\n", line));
  return code;
}

// What a user can mend by asking otherwise is wrong use.
int exit_code(const UserError& e) {
  const bool failed =
      e.kind() == ErrorKind::runtime || e.kind() == ErrorKind::compilation;
  return failed ? kFailed : kWrongUse;
}

int run(const std::vector<cli::Command>& commands, const std::string& config) {
  try {
    if (!config.empty()) cli::require_config_lines(config);
    for (const cli::Command& c : commands)
      if (c.app->parsed()) c.run();
    return 0;
  } catch (const UserError& e) {
    return complain(exit_code(e), e.what());
  } catch (const std::bad_alloc&) {
    return complain(kFailed, kTooLarge);
  } catch (const std::length_error&) {  // of a container
    return complain(kFailed, kTooLarge);
  } catch (const std::exception& e) {
    return complain(kFailed, e.what());
  }
}

// --help and --version: what the exception brings is what was asked for.
int answer(const CLI::App& app, const CLI::ParseError& e) {
  try {
    std::ostringstream text;
    app.exit(e, text, text);
    cli::write_text(text.str());
    return 0;
  } catch (const UserError& failed) {
    return complain(exit_code(failed), failed.what());
  }
}

// What no command takes, as it was typed.
std::string unexpected(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string command =
      chosen.empty() ? "braintrace" : "braintrace " + chosen.front()->get_name();
  return fmt::format("not expected: {}; {} --help lists the options",
                     fmt::join(app.remaining(true), " "), command);
}

std::string names_of(const std::vector<cli::Command>& commands) {
  std::vector<std::string> names;
  for (const cli::Command& c : commands) names.push_back(c.app->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

int main(int argc, char** argv) {
  cli::keep_closed_streams();
  CLI::App app("Online-learning compiler for recurrent and spiking networks.",
               "braintrace");
  app.set_version_flag("--version", "braintrace " BRAINTRACE_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.config_formatter(cli::config_format());
  app.set_config("--config", "", "read options from a TOML or INI file, by [command]");
  const std::vector<cli::Command> commands = {cli::add_show(app),    cli::add_train(app),
                                              cli::add_eval(app),    cli::add_plan(app),
                                              cli::add_compare(app), cli::add_export(app),
                                              cli::add_verify(app),  bench_command(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return answer(app, e);
    const bool no_command = app.get_subcommands().empty();
    if (no_command && argc > 1 && argv[1][0] != '-')
      return complain(kWrongUse, fmt::format("unknown command '{}'; there are: {}",
                                             argv[1], names_of(commands)));
    if (no_command && dynamic_cast<const CLI::RequiredError*>(&e) != nullptr)
      return complain(kWrongUse,
                      fmt::format("give a command: {}; or --help", names_of(commands)));
    if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr)
      return complain(kWrongUse, unexpected(app));
    return complain(kWrongUse, cli::config_complaint(e.what()));
  }
  const CLI::Option* config = app.get_config_ptr();
  return run(commands, config->count() > 0 ? config->as<std::string>() : "");
}
