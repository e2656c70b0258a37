// SPDX-License-Identifier: Apache-2.0
// y = -1, 0 or 1 by the sign of x; NaN stays NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_sign(const Kernel& k) {
  map_number(k, []<class T>(T x) {
    if (x != x) return x;
    return static_cast<T>((x > 0) - (x < 0));
  });
}

}  // namespace

const OpDef sign_op = {
    .name = "sign",
    .traits = Trait::elementwise | Trait::no_tangent,
    .infer = same_number,
    .eval = eval_sign,
    .lower = micro<MicroOp::sign>,
    .code = "sign($0)",
};

Value sign(Arg x) { return elementwise(sign_op, {x}); }

}  // namespace braintrace
