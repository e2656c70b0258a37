// SPDX-License-Identifier: Apache-2.0
#pragma once
// The constant list of all ops, and parse() with it.
#include "braintrace/ir/print.h"

namespace braintrace {

OpTable op_table();  // sorted by name
Graph parse(std::string_view text);

}  // namespace braintrace
