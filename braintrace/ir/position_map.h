// SPDX-License-Identifier: Apache-2.0
#pragma once
// How array positions flow through an op, axis by axis: the one fact that group
// membership, the cut set and SnAp patterns are computed from.
#include <cstdint>
#include <vector>

namespace braintrace {

enum class Flow : std::uint8_t {
  same,      // out[p] depends on in[p] along this axis
  shifted,   // out[p * step + offset] depends on in[p]: slice, pad, concatenate
  permuted,  // a fixed one-to-one map of positions: roll, reverse
  mixed,     // out[p] may depend on any in[q] along this axis: matmul, reduce, cumsum
  fresh,     // the axis has no counterpart in the input: broadcast
};

struct AxisFlow {
  Flow flow = Flow::same;
  std::int64_t in_axis = -1;  // -1 for fresh
  std::int64_t offset = 0;    // shifted: input position 0 lands here
  std::int64_t step = 1;
  friend bool operator==(const AxisFlow&, const AxisFlow&) = default;
};

// One input -> one output. Input axes that no entry names are reduced away (mixed).
struct InputFlow {
  bool reaches = true;  // false: the output does not depend on this input's values
  bool known = true;    // false: anything may reach anything
  std::vector<AxisFlow> axes = {};  // one per output axis
  friend bool operator==(const InputFlow&, const InputFlow&) = default;
};

// flow[input][output]
struct PositionMap {
  std::vector<std::vector<InputFlow>> flow;
};

InputFlow identity_flow(std::int64_t rank);
InputFlow no_flow();  // e.g. an index or a key
InputFlow unknown_flow();

// True when every axis is `same` onto itself and nothing is reduced.
bool is_identity(const InputFlow& f, std::int64_t in_rank);

}  // namespace braintrace
