// SPDX-License-Identifier: Apache-2.0
// Sum over axes, from left to right. f32 is summed in double; i32 wraps around.
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/reduce.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_reduce_sum(const Kernel& k) {
  const ReductionRows r = rows_of(k);
  const auto plus = [](auto a, auto b) { return a + b; };
  if (k.out[0].dtype() == DType::i32)
    return fold_rows<std::int32_t, std::uint32_t>(k, r, 0u, plus);
  if (k.out[0].dtype() == DType::f64) return fold_rows<double, double>(k, r, 0.0, plus);
  fold_rows<float, double>(k, r, 0.0, plus);
}

std::vector<Tangent> transpose_reduce_sum(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  return {spread_back(*ct[0], s.in[0].shape(), s.attrs.ints("axes"))};
}

}  // namespace

const OpDef reduce_sum_op = {
    .name = "reduce_sum",
    .traits = Trait::linear,
    .attrs = {{"axes", AttrKind::ints}},
    .infer = reduced_type,
    .eval = eval_reduce_sum,
    .lower = lower_reduction<ReduceKind::sum>,
    .code = "sum($0, {axes})",
    .transpose = transpose_reduce_sum,
    .batch = batch_reduction,
    .positions = reduction_positions,
    .simplify = simplify_same_type,
};

Value sum(Arg x, ReduceOptions options) { return reduce(reduce_sum_op, x, options); }

}  // namespace braintrace
