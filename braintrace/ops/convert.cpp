// SPDX-License-Identifier: Apache-2.0
// y = x in another element type. Floats to integers truncate and saturate, NaN becomes 0.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

std::vector<Type> infer_convert(std::span<const Type> in, const Attrs& attrs) {
  return {{attrs.dtype("dtype"), in[0].shape}};
}

void eval_convert(const Kernel& k) { k.out[0] = k.in[0].astype(k.attrs.dtype("dtype")); }

// Between floats the conversion is the identity; through integers nothing flows.
bool differentiable(const Site& s) {
  return is_float(s.in[0].dtype()) && is_float(s.attrs.dtype("dtype"));
}

std::vector<Tangent> jvp_convert(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0] || !differentiable(s)) return {std::nullopt};
  return {astype(*dx[0], s.attrs.dtype("dtype"))};
}

std::vector<Tangent> transpose_convert(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  return {astype(*ct[0], s.in[0].dtype())};
}

}  // namespace

const OpDef convert_op = {
    .name = "convert",
    .traits = Trait::elementwise | Trait::linear,
    .attrs = {{"dtype", AttrKind::dtype}},
    .infer = infer_convert,
    .eval = eval_convert,
    .lower = micro<MicroOp::convert>,
    .code = "convert<{dtype}>($0)",
    .jvp = jvp_convert,
    .transpose = transpose_convert,
    .simplify = simplify_convert,
};

Value astype(Arg x, DType dtype) {
  if (x.value.dtype() == dtype) return x.value;
  if (x.weak) return x.value.array().astype(dtype);
  return emit1(convert_op, {x.value}, {{"dtype", dtype}}, x.loc);
}

}  // namespace braintrace
