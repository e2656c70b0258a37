// SPDX-License-Identifier: Apache-2.0
// Numbers evenly spread in [0, 1).
#include "braintrace/array/rng.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/random_draw.h"

namespace braintrace {
namespace {

void eval_random_uniform(const Kernel& k) {
  fill_uniform(key_from_array(k.in[0]), 0, 1, k.out[0]);
}

}  // namespace

const OpDef random_uniform_op = {
    .name = "random_uniform",
    .traits = Trait::random | Trait::no_tangent,
    .attrs = {{"dtype", AttrKind::dtype}, {"shape", AttrKind::ints}},
    .infer = draw_type,
    .eval = eval_random_uniform,
    .lower = lower_draw<RandomKind::uniform>,
    .code = "random_uniform<{dtype}>($0, {shape})",
    .batch = each_lane,
    .positions = draw_positions,
};

Value random_uniform(Arg key, const Shape& shape, DType dtype) {
  return draw(random_uniform_op, key, shape, dtype);
}

}  // namespace braintrace
