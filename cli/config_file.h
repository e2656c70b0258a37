// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `--config` reads: [command], then name = value, a line each.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace braintrace::cli {

// TOML and INI as CLI11 reads them; a byte order mark and line ends of Windows are no
// part of it.
std::shared_ptr<CLI::Config> config_format();
// UserError names the first line that is neither [command] nor name = value.
void require_config_lines(const std::string& file);
// What CLI11 says about a name it does not know, in words of the file.
std::string config_complaint(const std::string& message);

}  // namespace braintrace::cli
