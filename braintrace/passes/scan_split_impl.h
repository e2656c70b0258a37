// SPDX-License-Identifier: Apache-2.0
#pragma once
// What split_scan decides about one loop. All ids are values of the body.
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/split_scan.h"

namespace braintrace {

enum class Place {
  unused,     // nobody reads this output of the loop
  invariant,  // the same at every step
  read,       // one of the xs itself
  loop,       // stacked by the loop
  after,      // computed behind the loop
};

struct ScanSplit {
  std::vector<bool> carried;     // by carry: it stays a carry
  std::vector<bool> unchanged;   // by carry: never changes, so it is a constant
  std::vector<ValueId> once;     // computed before the loop, a constant of it
  std::vector<ValueId> ahead;    // computed before the loop for all steps
  std::vector<ValueId> stacked;  // handed out by the loop
  std::vector<Place> ys;
  bool changes = false;
};

std::int64_t num_bytes(const Type& t);
// Costs less to compute again than to store and load.
bool is_cheap(const Lowering& l);

// used: by output of the scan, whether somebody reads it.
ScanSplit plan_split(const ScanView& scan, const std::vector<bool>& used,
                     const SplitScanOptions& options);

}  // namespace braintrace
