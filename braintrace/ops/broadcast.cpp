// SPDX-License-Identifier: Apache-2.0
// Stretches x to a larger shape by the numpy rule.
#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

std::vector<Type> infer_broadcast(std::span<const Type> in, const Attrs& attrs) {
  const Shape& shape = attrs.ints("shape");
  check_shape("broadcast", shape);
  BT_REQUIRE(broadcasts_to(in[0].shape, shape),
             fmt::format("broadcast: {} does not broadcast to {}", to_string(in[0].shape),
                         to_string(shape)));
  return {{in[0].dtype, shape}};
}

void eval_broadcast(const Kernel& k) {
  k.out[0] = k.in[0].broadcast_to(k.attrs.ints("shape")).contiguous();
}

Ints in_axes(std::int64_t in_rank, std::int64_t out_rank) {
  Ints axes = iota_ints(in_rank);
  for (std::int64_t& a : axes) a += out_rank - in_rank;
  return axes;
}

Lowering lower_broadcast(const Signature& s) {
  return lowering::Broadcast{in_axes(s.in[0].rank(), s.out[0].rank())};
}

std::vector<Tangent> transpose_broadcast(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  const Shape from = s.in[0].shape();
  const Shape& to = s.attrs.ints("shape");
  const std::size_t lead = to.size() - from.size();
  Ints axes;
  for (std::size_t i = 0; i < to.size(); ++i)
    if (i < lead || from[i - lead] != to[i]) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return {ct[0]};
  return {reshape(sum(*ct[0], {.axes = axes}), from)};
}

// The batch axis moves to the front; new axes open behind it.
BatchResult batch_broadcast(const Site& s, std::span<const BatchAxis> axes) {
  const Shape& target = s.attrs.ints("shape");
  Shape from = s.in[0].shape();
  const std::int64_t n = from[static_cast<std::size_t>(*axes[0])];
  Ints perm = {*axes[0]};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(from.size()); ++i)
    if (i != *axes[0]) perm.push_back(i);
  from.erase(from.begin() + *axes[0]);
  Shape padded = {n};
  padded.resize(1 + target.size() - from.size(), 1);
  padded.insert(padded.end(), from.begin(), from.end());
  Shape shape = {n};
  shape.insert(shape.end(), target.begin(), target.end());
  return {{broadcast_to(reshape(transpose(s.in[0], perm), padded), shape)}, {0}};
}

PositionMap positions_broadcast(const Signature& s) {
  const Shape& from = s.in[0].shape;
  const Shape& to = s.out[0].shape;
  const std::size_t lead = to.size() - from.size();
  InputFlow f;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool fresh = i < lead || from[i - lead] != to[i];
    f.axes.push_back(fresh ? AxisFlow{Flow::fresh, -1}
                           : AxisFlow{Flow::same, static_cast<std::int64_t>(i - lead)});
  }
  return {{{f}}};
}

}  // namespace

const OpDef broadcast_op = {
    .name = "broadcast",
    .traits = Trait::linear,
    .attrs = {{"shape", AttrKind::ints}},
    .infer = infer_broadcast,
    .eval = eval_broadcast,
    .lower = lower_broadcast,
    .code = "broadcast($0, {shape})",
    .transpose = transpose_broadcast,
    .batch = batch_broadcast,
    .positions = positions_broadcast,
    .simplify = simplify_broadcast,
};

Value broadcast_to(Arg x, const Shape& shape) {
  const Value v = settle(x);
  if (v.shape() == shape) return v;
  return emit1(broadcast_op, {v}, {{"shape", shape}}, x.loc);
}

}  // namespace braintrace
