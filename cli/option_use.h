// SPDX-License-Identifier: Apache-2.0
#pragma once
// Refuses options that were given and would do nothing.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace braintrace::cli {

// UserError when --decay, --kappa, --snap-n or --memory is given and none of the rules,
// among them "auto" and "all", takes it.
void require_arguments_used(const CLI::App& app, const std::vector<std::string>& rules);

// UserError when an option is given that neither `loads` nor any of `beside` is: a saved
// run says what it is.
void require_only(const CLI::App& app, const std::string& loads,
                  const std::vector<std::string>& beside);

}  // namespace braintrace::cli
