// SPDX-License-Identifier: Apache-2.0
// Largest element over axes. NaN if any element is; of no elements minus infinity.
#include "braintrace/ops/extreme.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_reduce_max(const Kernel& k) {
  eval_extreme(k, -std::numeric_limits<double>::infinity(),
               [](auto a, auto b) { return a > b; });
}

}  // namespace

const OpDef reduce_max_op = {
    .name = "reduce_max",
    .attrs = {{"axes", AttrKind::ints}},
    .infer = reduced_type_nonempty,
    .eval = eval_reduce_max,
    .lower = lower_reduction<ReduceKind::max>,
    .code = "max($0, {axes})",
    .jvp = extreme_jvp,
    .batch = batch_reduction,
    .positions = reduction_positions,
    .simplify = simplify_same_type,
};

Value max(Arg x, ReduceOptions options) { return reduce(reduce_max_op, x, options); }

}  // namespace braintrace
