// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one-step position graph of a group's transition, for SnAp(n).
#include <set>

#include "braintrace/etrace/hidden_group.h"

namespace braintrace {

// Which positions may read which, axis by axis. Needs: a transition with its recurrent
// products kept (include_recurrent_mixing).
//   snap_fallback = per_sample: every op's position map is followed; an axis that is
//   mixed
//     without a known pattern becomes all-to-all on that axis alone
//   snap_fallback = all_axes: the reference's walk; whatever it does not know makes every
//     axis all-to-all, the batch axis too. So does an operand that is stretched to the
//     positions on its way in; `stretched` has those among the transition's constants
AxisAdjacency one_step_adjacency(const HiddenGroup& g, SnapFallback fallback,
                                 const std::set<ValueId>& stretched = {});

// The transition's constants that are arrays broadcast to more positions.
std::set<ValueId> stretched_constants(const GraphIndex& index, const HiddenGroup& g);

// Closed over sparse_n steps. UserError not_supported when P * (K * S)^2 passes the
// ceiling.
SnapPattern group_snap_pattern(const HiddenGroup& g, const CompileOptions& options,
                               Diagnostics& diagnostics,
                               const std::set<ValueId>& stretched = {});

}  // namespace braintrace
