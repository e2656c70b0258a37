// SPDX-License-Identifier: Apache-2.0
// Smallest element over axes. NaN if any element is; of no elements plus infinity.
#include "braintrace/ops/extreme.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_reduce_min(const Kernel& k) {
  eval_extreme(k, std::numeric_limits<double>::infinity(),
               [](auto a, auto b) { return a < b; });
}

}  // namespace

const OpDef reduce_min_op = {
    .name = "reduce_min",
    .attrs = {{"axes", AttrKind::ints}},
    .infer = reduced_type_nonempty,
    .eval = eval_reduce_min,
    .lower = lower_reduction<ReduceKind::min>,
    .code = "min($0, {axes})",
    .jvp = extreme_jvp,
    .batch = batch_reduction,
    .positions = reduction_positions,
    .simplify = simplify_same_type,
};

Value min(Arg x, ReduceOptions options) { return reduce(reduce_min_op, x, options); }

}  // namespace braintrace
