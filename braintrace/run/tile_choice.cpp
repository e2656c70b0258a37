// SPDX-License-Identifier: Apache-2.0
// Which layout a tile program runs in.
#include <algorithm>

#include "braintrace/run/tile_compile_impl.h"

namespace braintrace {
namespace {

// What calls take beside what they compute, and operands that are gathered row by row,
// which is a little more than half a call.
double overhead(const TileCode& code) {
  constexpr double kGather = 0.6;
  const auto gathers = static_cast<double>(
      std::count_if(code.actions.begin(), code.actions.end(), [](const TileAction& a) {
        return a.kind == TileAction::gather || a.kind == TileAction::scatter;
      }));
  const auto actions = static_cast<double>(code.actions.size());
  const auto rows = static_cast<double>(code.layout.size / code.layout.row);
  return actions * static_cast<double>(code.layout.num_blocks()) +
         kGather * gathers * rows;
}

}  // namespace

TileCode compile_tile(const TileSpec& spec) {
  if (spec.steps.size() == 1) return compile_tile(spec, Rows::apart_for_one_kernel);
  TileCode apart = compile_tile(spec, Rows::apart);
  if (!apart.layout.inside_rows && apart.layout.size > 0)
    if (TileCode traces = compile_tile(spec, Rows::apart_for_one_kernel); traces.by_rows)
      return traces;
  if (!apart.traces.empty() || !apart.layout.inside_rows || apart.layout.size == 0)
    return apart;
  TileCode together = compile_tile(spec, Rows::together);
  return overhead(together) < overhead(apart) ? together : apart;
}

}  // namespace braintrace
