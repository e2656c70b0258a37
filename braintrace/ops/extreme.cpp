// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/extreme.h"

namespace braintrace {

std::vector<Tangent> extreme_jvp(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  const Value& x = s.in[0];
  const Ints& axes = s.attrs.ints("axes");
  if (axes.empty()) return {dx[0]};
  const Value reached =
      astype(equal(x, spread_back(s.out[0], x.shape(), axes)), x.dtype());
  const Value ties = sum(reached, {.axes = axes});
  const Value share = reached / spread_back(ties, x.shape(), axes);
  return {sum(share * *dx[0], {.axes = axes})};
}

}  // namespace braintrace
