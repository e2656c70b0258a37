// SPDX-License-Identifier: Apache-2.0
// y = ln x, element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_log(const Kernel& k) { map_math(k, SimdFn::log); }

std::vector<Tangent> jvp_log(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  return {*dx[0] / s.in[0]};
}

}  // namespace

const OpDef log_op = {
    .name = "log",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_log,
    .lower = micro<MicroOp::log>,
    .code = "log($0)",
    .jvp = jvp_log,
};

Value log(Arg x) { return elementwise_float(log_op, {x}); }

}  // namespace braintrace
