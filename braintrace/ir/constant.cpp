// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/constant.h"

namespace braintrace {
namespace {

std::vector<Type> infer(std::span<const Type>, const Attrs& attrs) {
  return {type_of(attrs.array("value"))};
}

void eval(const Kernel& k) { k.out[0] = k.attrs.array("value"); }

Lowering lower(const Signature&) { return lowering::Constant{}; }

BatchResult batch(const Site& s, std::span<const BatchAxis>) {
  return {{s.attrs.array("value")}, {std::nullopt}};
}

PositionMap positions(const Signature&) { return {}; }

}  // namespace

const OpDef constant_op = {
    .name = "constant",
    .traits = Trait::constant | Trait::no_tangent,
    .arity = 0,
    .attrs = {{"value", AttrKind::array}},
    .infer = infer,
    .eval = eval,
    .lower = lower,
    .code = "{value}",
    .batch = batch,
    .positions = positions,
};

const Array* literal(const Node& n) {
  return has(n.op->traits, Trait::constant) ? &n.attrs.array("value") : nullptr;
}

}  // namespace braintrace
