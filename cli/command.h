// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands of the program: each adds its options and says what runs when it is given.
#include <functional>

#include <CLI/CLI.hpp>

namespace braintrace::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<void()> run;  // throws what went wrong
};

Command add_show(CLI::App& app);
Command add_train(CLI::App& app);
Command add_eval(CLI::App& app);
Command add_plan(CLI::App& app);
Command add_compare(CLI::App& app);
Command add_export(CLI::App& app);
Command add_verify(CLI::App& app);

}  // namespace braintrace::cli
