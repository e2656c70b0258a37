// SPDX-License-Identifier: Apache-2.0
// y = condition ? a : b, element by element.
#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

std::vector<Type> infer_select(std::span<const Type> in, const Attrs&) {
  BT_REQUIRE_KIND(
      in[0].dtype == DType::boolean, ErrorKind::type,
      fmt::format("select: the condition must be boolean, got {}", to_string(in[0])));
  BT_REQUIRE_KIND(in[1] == in[2] && in[0].shape == in[1].shape, ErrorKind::type,
                  fmt::format("select: needs one shape and equal choices, got {}, {}, {}",
                              to_string(in[0]), to_string(in[1]), to_string(in[2])));
  BT_REQUIRE_KIND(is_computable(in[1].dtype), ErrorKind::type,
                  "select: bf16 is a storage type: convert to f32 first");
  return {in[1]};
}

void eval_select(const Kernel& k) {
  visit_dtype(k.out[0].dtype(), [&]<class T>(T) {
    const bool* c = k.in[0].data<bool>();
    const T* a = k.in[1].data<T>();
    const T* b = k.in[2].data<T>();
    T* y = k.out[0].mutable_data<T>();
    for (std::int64_t i = 0, n = k.out[0].size(); i < n; ++i) y[i] = c[i] ? a[i] : b[i];
  });
}

std::vector<Tangent> jvp_select(const Site& s, std::span<const Tangent> d) {
  if (!d[1] && !d[2]) return {std::nullopt};
  const Value a = d[1] ? *d[1] : zeros_like(s.out[0]);
  const Value b = d[2] ? *d[2] : zeros_like(s.out[0]);
  return {select(s.in[0], a, b)};
}

std::vector<Tangent> transpose_select(const Site& s, std::span<const Tangent> ct) {
  std::vector<Tangent> d(3);
  if (ct[0] && s.is_linear(1)) d[1] = select(s.in[0], *ct[0], 0);
  if (ct[0] && s.is_linear(2)) d[2] = select(s.in[0], 0, *ct[0]);
  return d;
}

}  // namespace

const OpDef select_op = {
    .name = "select",
    .traits = Trait::elementwise,
    .arity = 3,
    .infer = infer_select,
    .eval = eval_select,
    .lower = micro<MicroOp::select>,
    .code = "$0 ? $1 : $2",
    .jvp = jvp_select,
    .transpose = transpose_select,
    .simplify = simplify_select,
};

Value select(Arg condition, Arg if_true, Arg if_false) {
  Operands o = prepare("select", {if_true, if_false});
  o.values.insert(o.values.begin(), astype(condition, DType::boolean));
  return emit1(select_op, broadcast_together("select", o.values, condition.loc), {},
               condition.loc);
}

}  // namespace braintrace
