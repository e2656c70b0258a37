// SPDX-License-Identifier: Apache-2.0
// Running sum along an axis: y[i] = x[0] + ... + x[i], or from the end when reversed.
// f32 is summed in double; i32 wraps around.
#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_cumsum(std::span<const Type> in, const Attrs& attrs) {
  axis_attr("cumsum", attrs, in[0].rank());
  BT_REQUIRE_KIND(is_float(in[0].dtype) || in[0].dtype == DType::i32, ErrorKind::type,
                  fmt::format("cumsum: needs f32, f64 or i32, got {}", to_string(in[0])));
  return {in[0]};
}

template <class T, class Acc>
void accumulate_cumsum(const Kernel& k) {
  const AxisSplit s = split_at(k.in[0].shape(), k.attrs.integer("axis"));
  const bool reverse = k.attrs.flag("reverse");
  const T* x = k.in[0].data<T>();
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
    const std::int64_t base = i / s.inner * s.n * s.inner + i % s.inner;
    Acc acc = 0;
    for (std::int64_t j = 0; j < s.n; ++j) {
      const std::int64_t at = base + (reverse ? s.n - 1 - j : j) * s.inner;
      acc += static_cast<Acc>(x[at]);
      y[at] = static_cast<T>(acc);
    }
  }
}

void eval_cumsum(const Kernel& k) {
  if (k.out[0].dtype() == DType::i32)
    return accumulate_cumsum<std::int32_t, std::uint32_t>(k);
  if (k.out[0].dtype() == DType::f64) return accumulate_cumsum<double, double>(k);
  accumulate_cumsum<float, double>(k);
}

std::vector<Tangent> transpose_cumsum(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  return {cumsum(*ct[0], s.attrs.integer("axis"), !s.attrs.flag("reverse"))};
}

BatchResult batch_cumsum(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t axis = behind(s.attrs.integer("axis"), *axes[0]);
  return {{cumsum(s.in[0], axis, s.attrs.flag("reverse"))}, {axes[0]}};
}

PositionMap positions_cumsum(const Signature& s) {
  const std::int64_t axis = s.attrs.integer("axis");
  InputFlow f = identity_flow(s.in[0].rank());
  if (dim_at(s.in[0].shape, axis) > 1)
    f.axes[static_cast<std::size_t>(axis)].flow = Flow::mixed;
  return {{{f}}};
}

}  // namespace

const OpDef cumsum_op = {
    .name = "cumsum",
    .traits = Trait::linear,
    .attrs = {{"axis", AttrKind::integer}, {"reverse", AttrKind::boolean}},
    .infer = infer_cumsum,
    .eval = eval_cumsum,
    .code = "cumsum($0, {axis}, {reverse})",
    .transpose = transpose_cumsum,
    .batch = batch_cumsum,
    .positions = positions_cumsum,
};

Value cumsum(Arg x, std::int64_t axis, bool reverse) {
  Value v = settle(x);
  if (v.dtype() == DType::boolean) v = astype(x, DType::i32);
  const std::int64_t a = normalize_axis("cumsum", axis, v.rank());
  return emit1(cumsum_op, {v}, {{"axis", a}, {"reverse", reverse}}, x.loc);
}

}  // namespace braintrace
