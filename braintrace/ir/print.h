// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs as text:
//   in %0:f32[2]
//   %1:f32[2] = tanh %0
//   %2:f32[1] = slice {size=[1], start=[0], step=[1]} %1
//   out %2
// Sub-graphs stand in braces: body={ in ... out ... }. White space is free.
// parse(print(g)) == g.
#include <string>
#include <string_view>

#include "braintrace/ir/op_def.h"

namespace braintrace {

std::string print(const Graph& g);
std::string print(const Attr& a);

// UserError with line number on malformed text; never crashes, whatever the text.
Graph parse(std::string_view text, OpTable ops);

}  // namespace braintrace
