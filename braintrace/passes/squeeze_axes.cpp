// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/squeeze_axes.h"

#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
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

// A sum over axes of size 1 only changes the shape.
Rewrite without_sum(const Site& s) {
  if (s.in.size() != 1 || !s.op.lower) return std::nullopt;
  const std::vector<Type> in = {s.in[0].type()};
  const std::vector<Type> out = s.op.infer(in, s.attrs);
  const Lowering l = s.op.lower({in, out, s.attrs});
  if (!is_sum(l) || out[0].size() != in[0].size()) return std::nullopt;
  return {{reshape(s.in[0], out[0].shape)}};
}

}  // namespace

Graph squeeze_axes(const Graph& g) {
  RewriteRules rules{.sub_graph = squeeze_axes};
  rules.node = [](Builder&, const Site& s) -> Rewrite {
    const Rewrite sum = without_sum(s);
    return sum ? sum : without_ones(s);
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
