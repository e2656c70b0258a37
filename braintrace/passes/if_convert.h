// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replaces branches by selection: both sides are computed, the predicate picks.
//   Needs: a verified graph.
//   Keeps: inputs, outputs, values; derivatives, with one exception. Each side sees its
//          own operands only while it is chosen, and ones otherwise (zeros for integers),
//          so a side that is not chosen cannot give 0 * NaN in reverse mode, unless it
//          has no finite derivative at ones either.
//   Skips: branches that hold a loop of unknown length or read by index: run on operands
//          they were not made for, these could fail.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph if_convert(const Graph& g);

}  // namespace braintrace
