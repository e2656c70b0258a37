// SPDX-License-Identifier: Apache-2.0
// Rotates along one axis: y[(i + shift) mod n] = x[i].
#include <cstring>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

// The shift in [0, n).
std::int64_t effective_shift(std::int64_t shift, std::int64_t n) {
  if (n == 0) return 0;
  const std::int64_t r = shift % n;
  return r < 0 ? r + n : r;
}

std::vector<Type> infer_roll(std::span<const Type> in, const Attrs& attrs) {
  axis_attr("roll", attrs, in[0].rank());
  return {in[0]};
}

void eval_roll(const Kernel& k) {
  const AxisSplit s = split_at(k.in[0].shape(), k.attrs.integer("axis"));
  const std::int64_t shift = effective_shift(k.attrs.integer("shift"), s.n);
  const std::size_t row = static_cast<std::size_t>(s.inner) * size_of(k.in[0].dtype());
  const std::size_t head = static_cast<std::size_t>(s.n - shift) * row;
  const std::size_t tail = static_cast<std::size_t>(shift) * row;
  const auto* x = static_cast<const std::byte*>(k.in[0].raw());
  auto* y = static_cast<std::byte*>(k.out[0].mutable_raw());
  for (std::int64_t o = 0; o < s.outer; ++o) {
    std::memcpy(y + tail, x, head);
    std::memcpy(y, x + head, tail);
    x += head + tail;
    y += head + tail;
  }
}

std::vector<Tangent> transpose_roll(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  const std::int64_t axis = s.attrs.integer("axis");
  const std::int64_t n = s.in[0].dim(axis);
  return {roll(*ct[0], n - effective_shift(s.attrs.integer("shift"), n), axis)};
}

BatchResult batch_roll(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t axis = behind(s.attrs.integer("axis"), *axes[0]);
  return {{roll(s.in[0], s.attrs.integer("shift"), axis)}, {axes[0]}};
}

PositionMap positions_roll(const Signature& s) {
  const std::int64_t axis = s.attrs.integer("axis");
  InputFlow f = identity_flow(s.in[0].rank());
  if (effective_shift(s.attrs.integer("shift"), dim_at(s.in[0].shape, axis)) != 0)
    f.axes[static_cast<std::size_t>(axis)].flow = Flow::permuted;
  return {{{f}}};
}

}  // namespace

const OpDef roll_op = {
    .name = "roll",
    .traits = Trait::linear,
    .attrs = {{"axis", AttrKind::integer}, {"shift", AttrKind::integer}},
    .infer = infer_roll,
    .eval = eval_roll,
    .code = "roll($0, {shift}, {axis})",
    .transpose = transpose_roll,
    .batch = batch_roll,
    .positions = positions_roll,
};

Value roll(Arg x, std::int64_t shift, std::int64_t axis) {
  const Value v = settle(x);
  const std::int64_t a = normalize_axis("roll", axis, v.rank());
  const std::int64_t by = effective_shift(shift, v.dim(a));
  if (by == 0) return v;
  return emit1(roll_op, {v}, {{"axis", a}, {"shift", by}}, x.loc);
}

}  // namespace braintrace
