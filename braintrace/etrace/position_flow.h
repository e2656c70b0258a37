// SPDX-License-Identifier: Apache-2.0
#pragma once
// Abstract interpretation over position maps: does a value line up, entry by entry, with
// the positions of a source, and which ops break that? Everything the compiler knows
// about locality comes from here.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "braintrace/etrace/graph_index.h"

namespace braintrace {

// How a value's axes line up with the source's position axes.
//   local: axes[k] = position axis, or -1 for an axis that is none (state, stretched,
//   new);
//          position axes keep their order; axes of size 1 may be missing
//   flat:  the entries in row-major order are the positions in row-major order
struct Alignment {
  bool flat = false;
  std::vector<int> axes;
  friend bool operator==(const Alignment&, const Alignment&) = default;
};

// Positions = the first `positions.size()` axes; a trailing state axis is no position.
Alignment source_alignment(const Shape& positions, std::int64_t rank);
// Does a value of this shape with this alignment stand position by position on
// `positions`? With `stretched`, positions may be missing at the front (a weight shared
// by a batch).
bool stands_on(const Alignment& a, const Shape& value_shape, const Shape& positions);

// Alignment of one output given that of one input; nullopt: positions are mixed (or
// moved).
std::optional<Alignment> through(const Graph& g, const Node& n, std::size_t input,
                                 std::size_t output, const Alignment& in,
                                 const Shape& positions);

struct FlowOptions {
  bool mixing_is_kept = false;  // reference: column sums instead of cuts
  bool cross_etp = false;       // follow through other trainable ops
  bool cross_products = false;  // follow through plain products of derived data
};
inline constexpr FlowOptions kEverything = {
    .mixing_is_kept = true, .cross_etp = true, .cross_products = true};

// What one or several sources reach, position by position.
struct Influence {
  std::map<ValueId, Alignment> reached;  // sources included
  std::set<Use> kept;                    // uses the influence passes through
  std::vector<Use> cuts;                 // uses where it stops because positions mix
};

using StopAt = std::function<bool(ValueId)>;
// Stops silently at stop_gradient and at ops without tangents. `stop_at`: values whose
// uses are not followed (hidden outputs of other groups).
Influence influence_of(const GraphIndex& index, std::span<const ValueId> sources,
                       const Shape& positions, const FlowOptions& options,
                       const StopAt& stop_at = {});

// The same from sources that already stand on the positions in some way.
Influence influence_from(const GraphIndex& index,
                         const std::map<ValueId, Alignment>& sources,
                         const Shape& positions, const FlowOptions& options,
                         const StopAt& stop_at = {});

// A product of two data operands (matrix product or convolution), trainable or not.
bool is_product(const Graph& g, const Node& n);

}  // namespace braintrace
