// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/position_map.h"

namespace braintrace {

InputFlow identity_flow(std::int64_t rank) {
  InputFlow f;
  for (std::int64_t i = 0; i < rank; ++i) f.axes.push_back({Flow::same, i});
  return f;
}

InputFlow no_flow() { return {.reaches = false}; }

InputFlow unknown_flow() { return {.known = false}; }

bool is_identity(const InputFlow& f, std::int64_t in_rank) {
  return f.reaches && f.known && f == identity_flow(in_rank);
}

}  // namespace braintrace
