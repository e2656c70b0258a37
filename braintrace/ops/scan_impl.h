// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of a scan node, shared by its meaning and its rules. For this op only.
#include "braintrace/ops/region.h"

namespace braintrace {

// inputs consts, carry, xs; body: consts, carry, x_t -> carry, y_t; outputs carry, ys
struct ScanLayout {
  const Graph& body;
  std::size_t consts, carry, xs, ys;
  std::int64_t length;
  bool reverse;  // last step first
};
// Needs: attributes that infer accepts.
ScanLayout scan_layout(const Attrs& attrs);

struct ScanNode {
  GraphPtr body;
  Values consts, carry, xs;
  std::int64_t length = 0;
  bool reverse = false;
};
Values emit_scan(ScanNode n, SourceLoc loc);

RegionJvp scan_jvp(const Site& s, std::span<const Tangent> tangents);
std::vector<Tangent> scan_transpose(const Site& s, std::span<const Tangent> ct);
BatchResult scan_batch(const Site& s, std::span<const BatchAxis> axes);

}  // namespace braintrace
