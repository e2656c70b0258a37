// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `--config` reads: [command], then name = value, a line each.
#include <string>

namespace braintrace::cli {

// UserError names the first line that is neither [command] nor name = value.
void require_config_lines(const std::string& file);
// What CLI11 says about a name it does not know, in words of the file.
std::string config_complaint(const std::string& message);

}  // namespace braintrace::cli
