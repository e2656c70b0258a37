// SPDX-License-Identifier: Apache-2.0
// Index of the first of the largest elements along an axis. A NaN counts as largest.
#include <limits>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_argmax(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = axis_attr("argmax", attrs, in[0].rank());
  const std::int64_t n = dim_at(in[0].shape, axis);
  BT_REQUIRE_KIND(is_float(in[0].dtype) || in[0].dtype == DType::i32, ErrorKind::type,
                  fmt::format("argmax: needs f32, f64 or i32, got {}", to_string(in[0])));
  BT_REQUIRE(n > 0 && n <= std::numeric_limits<std::int32_t>::max(),
             fmt::format("argmax: axis {} of {} must have 1 to 2^31-1 elements", axis,
                         to_string(in[0])));
  return {{DType::i32, removed(in[0].shape, axis)}};
}

void eval_argmax(const Kernel& k) {
  const AxisSplit s = split_at(k.in[0].shape(), k.attrs.integer("axis"));
  auto* y = k.out[0].mutable_data<std::int32_t>();
  visit_dtype(k.in[0].dtype(), [&]<class T>(T) {
    const T* x = k.in[0].data<T>();
    const auto beats = [](T a, T b) { return a > b || (a != a && b == b); };
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
      const T* line = x + i / s.inner * s.n * s.inner + i % s.inner;
      std::int64_t best = 0;
      for (std::int64_t j = 1; j < s.n; ++j)
        if (beats(line[j * s.inner], line[best * s.inner])) best = j;
      y[i] = static_cast<std::int32_t>(best);
    }
  });
}

BatchResult batch_argmax(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t a = s.attrs.integer("axis"), b = *axes[0];
  return {{argmax(s.in[0], behind(a, b))}, {a < b ? b - 1 : b}};
}

PositionMap positions_argmax(const Signature& s) {
  InputFlow f = identity_flow(s.in[0].rank());
  f.axes.erase(f.axes.begin() + s.attrs.integer("axis"));
  return {{{f}}};
}

}  // namespace

const OpDef argmax_op = {
    .name = "argmax",
    .traits = Trait::no_tangent,
    .attrs = {{"axis", AttrKind::integer}},
    .infer = infer_argmax,
    .eval = eval_argmax,
    .code = "argmax($0, {axis})",
    .batch = batch_argmax,
    .positions = positions_argmax,
};

Value argmax(Arg x, std::int64_t axis) {
  Value v = settle(x);
  if (v.dtype() == DType::boolean) v = astype(x, DType::i32);
  const std::int64_t a = normalize_axis("argmax", axis, v.rank());
  return emit1(argmax_op, {v}, {{"axis", a}}, x.loc);
}

}  // namespace braintrace
