// SPDX-License-Identifier: Apache-2.0
// Gaussian numbers of mean 0 and variance 1.
#include "braintrace/array/rng.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/random_draw.h"

namespace braintrace {
namespace {

void eval_random_normal(const Kernel& k) {
  fill_normal(key_from_array(k.in[0]), k.out[0]);
}

}  // namespace

const OpDef random_normal_op = {
    .name = "random_normal",
    .traits = Trait::random | Trait::no_tangent,
    .attrs = {{"dtype", AttrKind::dtype}, {"shape", AttrKind::ints}},
    .infer = draw_type,
    .eval = eval_random_normal,
    .lower = lower_draw<RandomKind::normal>,
    .code = "random_normal<{dtype}>($0, {shape})",
    .batch = each_lane,
    .positions = draw_positions,
};

Value random_normal(Arg key, const Shape& shape, DType dtype) {
  return draw(random_normal_op, key, shape, dtype);
}

}  // namespace braintrace
