// SPDX-License-Identifier: Apache-2.0
// Trainable value used element by element: y = w, with a trace.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_element_wise(std::span<const Type> in, const Attrs& attrs) {
  check_hooks("element_wise", attrs);
  return same_float(in, attrs);
}

void eval_element_wise(const Kernel& k) { k.out[0] = k.in[0]; }

std::vector<Tangent> jvp_element_wise(const Site&, std::span<const Tangent> d) {
  return {d[0]};
}

std::vector<Tangent> transpose_element_wise(const Site&, std::span<const Tangent> ct) {
  return {ct[0]};
}

// A weight per lane is no longer one parameter: the value itself.
BatchResult batch_element_wise(const Site& s, std::span<const BatchAxis> axes) {
  return {{s.in[0]}, {axes[0]}};
}

std::vector<WeightInput> weights_element_wise(const Signature&) {
  return {{"weight", 0}};
}
Type trace_element_wise(const Signature& s, int) { return s.out[0]; }
Anchor anchor_element_wise(const Signature& s, int) {
  return same_anchor(s.out[0].rank());
}
Value instant_element_wise(const Site&, int, const Value& df) { return df; }
std::string_view reference_name_element_wise(const Signature&) { return "etp_elemwise"; }

const EtpRule rule_element_wise = {
    .gradient_enabled = true,
    .weights = weights_element_wise,
    .trace = trace_element_wise,
    .anchor = anchor_element_wise,
    .instant = instant_element_wise,
    .reference_name = reference_name_element_wise,
};

}  // namespace

const OpDef element_wise_op = {
    .name = "element_wise",
    .traits = Trait::elementwise | Trait::linear,
    .attrs = {{"hooks", AttrKind::text, true}},
    .infer = infer_element_wise,
    .eval = eval_element_wise,
    .lower = micro<MicroOp::copy>,
    .code = "element_wise($0)",
    .jvp = jvp_element_wise,
    .transpose = transpose_element_wise,
    .batch = batch_element_wise,
    .etp = &rule_element_wise,
};

Value element_wise(Arg weight, const Hook& hook) {
  const Value w = settle(weight);
  return emit1(element_wise_op, {hook ? hook(w) : w},
               with_hooks({}, hook ? "weight" : ""), weight.loc);
}

}  // namespace braintrace
