// SPDX-License-Identifier: Apache-2.0
// Picks slices of x along an axis: y[.., j.., ..] = x[.., indices[j..], ..].
#include <cstring>

#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/indexing.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_gather(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = axis_attr("gather", attrs, in[0].rank());
  require_indices("gather", in[1]);
  return {{in[0].dtype, picked_shape(in[0].shape, in[1].shape, axis)}};
}

// What a refusal calls an index.
std::string indices_of(const Attrs& attrs) {
  return attrs.has("labels_of") ? attrs.text("labels_of") + ": label" : "gather: index";
}

void eval_gather(const Kernel& k) {
  const AxisSplit s = split_at(k.in[0].shape(), k.attrs.integer("axis"));
  const std::int32_t* index = checked_indices(indices_of(k.attrs), k.in[1], s.n);
  const std::int64_t picks = k.in[1].size();
  const std::size_t row = static_cast<std::size_t>(s.inner) * size_of(k.in[0].dtype());
  const auto* x = static_cast<const std::byte*>(k.in[0].raw());
  auto* y = static_cast<std::byte*>(k.out[0].mutable_raw());
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t j = 0; j < picks; ++j, y += row)
      std::memcpy(y, x + static_cast<std::size_t>(o * s.n + index[j]) * row, row);
}

Lowering lower_gather(const Signature& s) {
  return lowering::Gather{s.attrs.integer("axis"), indices_of(s.attrs)};
}

std::vector<Tangent> jvp_gather(const Site& s, std::span<const Tangent> d) {
  if (!d[0]) return {std::nullopt};
  return {take(*d[0], s.in[1], s.attrs.integer("axis"))};
}

std::vector<Tangent> transpose_gather(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0] || !s.is_linear(0)) return {std::nullopt, std::nullopt};
  const Type x = s.in[0].type();
  return {scatter_add(zeros(x.shape, x.dtype), s.in[1], *ct[0], s.attrs.integer("axis")),
          std::nullopt};
}

// One gather over all lanes: the lanes' axes stand one behind the other.
Value gather_lanes(const Value& x, const Value& indices, std::int64_t axis) {
  const Value front = move_axis(x, axis + 1, 1);
  const Shape lanes = front.shape();
  const Shape rest = dims_between(lanes, 2, front.rank());
  const Value flat = reshape(front, joined({{lanes[0] * lanes[1]}, rest}));
  const Value y = take(flat, lane_indices("gather", indices, lanes[1]), 0);
  // [n, picks.., before.., after..] -> [n, before.., picks.., after..]
  const std::int64_t picks = indices.rank() - 1;
  Ints order = {0};
  for (std::int64_t a = 0; a < axis; ++a) order.push_back(1 + picks + a);
  for (std::int64_t a = 0; a < picks; ++a) order.push_back(1 + a);
  for (std::int64_t a = 1 + picks + axis; a < y.rank(); ++a) order.push_back(a);
  return transpose(y, order);
}

BatchResult batch_gather(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t axis = s.attrs.integer("axis");
  if (!axes[0])
    return {{emit1(gather_op, {s.in[0], s.in[1]}, s.attrs)}, {axis + *axes[1]}};
  if (!axes[1]) {
    const std::int64_t b = *axes[0];
    const std::int64_t place = b <= axis ? b : b - 1 + s.in[1].rank();
    return {{take(s.in[0], s.in[1], behind(axis, b))}, {place}};
  }
  return {{gather_lanes(move_axis(s.in[0], *axes[0], 0), move_axis(s.in[1], *axes[1], 0),
                        axis)},
          {0}};
}

PositionMap positions_gather(const Signature& s) {
  const std::int64_t axis = s.attrs.integer("axis");
  InputFlow f;
  for (std::int64_t a = 0; a < axis; ++a) f.axes.push_back({Flow::same, a});
  for (std::int64_t a = 0; a < s.in[1].rank(); ++a) f.axes.push_back({Flow::mixed, axis});
  for (std::int64_t a = axis + 1; a < s.in[0].rank(); ++a)
    f.axes.push_back({Flow::same, a});
  return {{{f}, {no_flow()}}};
}

}  // namespace

const OpDef gather_op = {
    .name = "gather",
    .arity = 2,
    .attrs = {{"axis", AttrKind::integer}, {"labels_of", AttrKind::text, true}},
    .infer = infer_gather,
    .eval = eval_gather,
    .lower = lower_gather,
    .code = "take($0, $1, {axis})",
    .jvp = jvp_gather,
    .transpose = transpose_gather,
    .batch = batch_gather,
    .positions = positions_gather,
};

Value take(Arg x, Arg indices, std::int64_t axis) {
  const Value v = settle(x);
  const std::int64_t a = normalize_axis("take", axis, v.rank());
  return emit1(gather_op, {v, settle(indices)}, {{"axis", a}}, x.loc);
}

// Looking labels up in 0, 1, ... is the identity, and a lookup checks its indices.
Value checked_labels(const char* loss, const Value& labels, std::int64_t classes) {
  return emit1(gather_op, {iota(classes), labels},
               {{"axis", std::int64_t{0}}, {"labels_of", std::string(loss)}});
}

}  // namespace braintrace
