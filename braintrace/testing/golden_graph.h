// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compiled graph of a recorded case against the recorded summary.
#include <string>

namespace braintrace::testing {

// Compiles the case's model in compat mode; the first place where groups, relations,
// excluded weights, dynamic states or diagnostics differ, as text; empty when all agree
// or the case holds no graph. UserError when the case cannot be built or compiled.
std::string graph_difference(const std::string& case_text);

}  // namespace braintrace::testing
