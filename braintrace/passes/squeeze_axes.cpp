// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/squeeze_axes.h"

#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

Shape squeezed(Shape s) {
  s.erase(std::remove(s.begin(), s.end(), 1), s.end());
  return s;
}

Rewrite without_ones(const Site& s) {
  if (!has(s.op.traits, Trait::elementwise) || s.in.empty()) return std::nullopt;
  const Shape shape = s.in[0].shape(), small = squeezed(shape);
  if (small == shape) return std::nullopt;
  std::vector<Value> in;
  for (const Value& v : s.in) {
    if (v.shape() != shape) return std::nullopt;
    in.push_back(reshape(v, small));
  }
  return {{reshape(emit1(s.op, std::move(in), s.attrs, s.loc), shape)}};
}

}  // namespace

Graph squeeze_axes(const Graph& g) {
  RewriteRules rules{.sub_graph = squeeze_axes};
  rules.node = [](Builder&, const Site& s) -> Rewrite { return without_ones(s); };
  return rewrite(g, rules);
}

}  // namespace braintrace
