// SPDX-License-Identifier: Apache-2.0
#pragma once
// Judges exported code: compiles it and reads what it prints.
#include <string>
#include <vector>

#include "braintrace/io/export_header.h"

namespace braintrace::testing {

// Compiles a whole program with g++ -std=c++17 or gcc -std=c99, -Wall -Wextra -Werror
// -O2, runs it and returns the numbers it prints. Throws CheckFailure with the messages
// when either fails.
std::vector<double> run_source(const std::string& source, ExportLanguage language);

}  // namespace braintrace::testing
