// SPDX-License-Identifier: Apache-2.0
// Reverses the order of elements along axes.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

std::vector<Type> infer_flip(std::span<const Type> in, const Attrs& attrs) {
  const Ints& axes = attrs.ints("axes");
  BT_REQUIRE(normalize_axes("flip", axes, in[0].rank()) == axes,
             fmt::format("flip: axes must be sorted and >= 0, got {}", to_string(axes)));
  return {in[0]};
}

Array flipped(const Array& x, std::int64_t axis) {
  const AxisSplit s = split_at(x.shape(), axis);
  Array y = Array::uninitialized(x.dtype(), x.shape());
  const std::size_t row = static_cast<std::size_t>(s.inner) * size_of(x.dtype());
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(y.mutable_raw());
  for (std::int64_t i = 0; i < s.outer * s.n; ++i) {
    const std::int64_t j = i / s.n * s.n + (s.n - 1 - i % s.n);
    std::memcpy(to + static_cast<std::size_t>(j) * row,
                from + static_cast<std::size_t>(i) * row, row);
  }
  return y;
}

void eval_flip(const Kernel& k) {
  k.out[0] = k.in[0];
  for (std::int64_t a : k.attrs.ints("axes")) k.out[0] = flipped(k.out[0], a);
}

std::vector<Tangent> transpose_flip(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  return {flip(*ct[0], s.attrs.ints("axes"))};
}

BatchResult batch_flip(const Site& s, std::span<const BatchAxis> axes) {
  Ints shifted = s.attrs.ints("axes");
  for (std::int64_t& a : shifted) a = behind(a, *axes[0]);
  return {{flip(s.in[0], shifted)}, {axes[0]}};
}

PositionMap positions_flip(const Signature& s) {
  InputFlow f = identity_flow(s.in[0].rank());
  for (std::int64_t a : s.attrs.ints("axes"))
    if (dim_at(s.in[0].shape, a) > 1)
      f.axes[static_cast<std::size_t>(a)].flow = Flow::permuted;
  return {{{f}}};
}

}  // namespace

const OpDef flip_op = {
    .name = "flip",
    .traits = Trait::linear,
    .attrs = {{"axes", AttrKind::ints}},
    .infer = infer_flip,
    .eval = eval_flip,
    .code = "flip($0, {axes})",
    .transpose = transpose_flip,
    .batch = batch_flip,
    .positions = positions_flip,
    .simplify = simplify_involution,
};

Value flip(Arg x, const Ints& axes) {
  const Value v = settle(x);
  const Ints sorted = normalize_axes("flip", axes, v.rank());
  if (sorted.empty()) return v;
  return emit1(flip_op, {v}, {{"axes", sorted}}, x.loc);
}

}  // namespace braintrace
