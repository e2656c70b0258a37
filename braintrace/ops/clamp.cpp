// SPDX-License-Identifier: Apache-2.0
// y = min(max(x, low), high), element by element. NaN if any of the three is.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_clamp(const Kernel& k) {
  visit_dtype(k.out[0].dtype(), [&]<class T>(T) {
    const T* x = k.in[0].data<T>();
    const T* low = k.in[1].data<T>();
    const T* high = k.in[2].data<T>();
    T* y = k.out[0].mutable_data<T>();
    for (std::int64_t i = 0, n = k.out[0].size(); i < n; ++i) {
      const T l = low[i], h = high[i];
      const T raised = x[i] < l || l != l ? l : x[i];
      y[i] = raised > h || h != h ? h : raised;
    }
  });
}

Tangent where(const Value& condition, const Tangent& t) {
  if (!t) return std::nullopt;
  return select(condition, *t, 0);
}

// Strictly inside, x decides; strictly outside, the bound does; on a bound nobody.
std::vector<Tangent> jvp_clamp(const Site& s, std::span<const Tangent> d) {
  const Value x = s.in[0], low = s.in[1], high = s.in[2];
  Tangent dy;
  if (d[0]) dy = where(logical_and(x > low, x < high), d[0]);
  if (d[1]) dy = sum_tangents(dy, where(logical_and(x < low, low <= high), d[1]));
  if (d[2]) dy = sum_tangents(dy, where(maximum(x, low) > high, d[2]));
  return {dy};
}

}  // namespace

const OpDef clamp_op = {
    .name = "clamp",
    .traits = Trait::elementwise,
    .arity = 3,
    .infer = same_number,
    .eval = eval_clamp,
    .lower = micro<MicroOp::clamp>,
    .code = "clamp($0, $1, $2)",
    .jvp = jvp_clamp,
};

Value clamp(Arg x, Arg low, Arg high) { return elementwise(clamp_op, {x, low, high}); }

}  // namespace braintrace
