// SPDX-License-Identifier: Apache-2.0
// 0, 1, ..., n-1.
#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

std::vector<Type> infer_iota(std::span<const Type>, const Attrs& attrs) {
  const std::int64_t n = attrs.integer("n");
  const DType dtype = attrs.dtype("dtype");
  BT_REQUIRE_KIND(
      is_float(dtype) || dtype == DType::i32, ErrorKind::type,
      fmt::format("iota: dtype must be i32, f32 or f64, got {}", to_string(dtype)));
  BT_REQUIRE(n >= 0 && n <= (std::int64_t{1} << 31),
             fmt::format("iota: n must be in [0, 2^31], got {}", n));
  return {{dtype, {n}}};
}

void eval_iota(const Kernel& k) {
  const std::int64_t n = k.out[0].size();
  if (k.out[0].dtype() == DType::i32) {
    auto* y = k.out[0].mutable_data<std::int32_t>();
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<std::int32_t>(i);
  } else if (k.out[0].dtype() == DType::f32) {
    auto* y = k.out[0].mutable_data<float>();
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(i);
  } else {
    auto* y = k.out[0].mutable_data<double>();
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<double>(i);
  }
}

BatchResult batch_iota(const Site& s, std::span<const BatchAxis>) {
  return {{iota(s.attrs.integer("n"), s.attrs.dtype("dtype"))}, {std::nullopt}};
}

PositionMap positions_iota(const Signature&) { return {}; }

}  // namespace

const OpDef iota_op = {
    .name = "iota",
    .traits = Trait::no_tangent,
    .arity = 0,
    .attrs = {{"dtype", AttrKind::dtype}, {"n", AttrKind::integer}},
    .infer = infer_iota,
    .eval = eval_iota,
    .code = "iota<{dtype}>({n})",
    .batch = batch_iota,
    .positions = positions_iota,
};

Value iota(std::int64_t n, DType dtype) {
  return emit1(iota_op, {}, {{"dtype", dtype}, {"n", n}});
}

}  // namespace braintrace
