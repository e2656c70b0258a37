// SPDX-License-Identifier: Apache-2.0
// x with updates added at picked places: y = x; y[.., indices[j..], ..] += u[.., j..,
// ..]. Places picked twice receive both.
#include <fmt/format.h>

#include "braintrace/ops/batch.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/indexing.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_scatter_add(std::span<const Type> in, const Attrs& attrs) {
  const std::int64_t axis = axis_attr("scatter_add", attrs, in[0].rank());
  require_indices("scatter_add", in[1]);
  BT_REQUIRE_KIND(
      is_float(in[0].dtype) || in[0].dtype == DType::i32, ErrorKind::type,
      fmt::format("scatter_add: needs f32, f64 or i32, got {}", to_string(in[0])));
  const Type want{in[0].dtype, picked_shape(in[0].shape, in[1].shape, axis)};
  BT_REQUIRE_KIND(in[2] == want, ErrorKind::type,
                  fmt::format("scatter_add: updates must be {}, got {}", to_string(want),
                              to_string(in[2])));
  return {in[0]};
}

template <class T, class Acc>
void add_updates(const Kernel& k) {
  const AxisSplit s = split_at(k.in[0].shape(), k.attrs.integer("axis"));
  const std::int32_t* index = checked_indices("scatter_add: index", k.in[1], s.n);
  const std::int64_t picks = k.in[1].size();
  const T* u = k.in[2].data<T>();
  k.out[0] = k.in[0];
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t r = 0; r < s.outer * picks; ++r)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      T& place = y[(r / picks * s.n + index[r % picks]) * s.inner + i];
      place =
          static_cast<T>(static_cast<Acc>(place) + static_cast<Acc>(u[r * s.inner + i]));
    }
}

void eval_scatter_add(const Kernel& k) {
  if (k.out[0].dtype() == DType::i32) return add_updates<std::int32_t, std::uint32_t>(k);
  if (k.out[0].dtype() == DType::f64) return add_updates<double, double>(k);
  add_updates<float, float>(k);
}

Lowering lower_scatter_add(const Signature& s) {
  return lowering::ScatterAdd{s.attrs.integer("axis")};
}

// Linear in x and updates together.
std::vector<Tangent> jvp_scatter_add(const Site& s, std::span<const Tangent> d) {
  if (!d[2]) return {d[0]};
  const Type x = s.in[0].type();
  const Value dx = d[0] ? *d[0] : Value(zeros(x.shape, x.dtype));
  return {scatter_add(dx, s.in[1], *d[2], s.attrs.integer("axis"))};
}

std::vector<Tangent> transpose_scatter_add(const Site& s, std::span<const Tangent> ct) {
  std::vector<Tangent> out(3);
  if (!ct[0]) return out;
  if (s.is_linear(0)) out[0] = ct[0];
  if (s.is_linear(2)) out[2] = take(*ct[0], s.in[1], s.attrs.integer("axis"));
  return out;
}

// Every lane has its own indices: one scatter into the lanes' axes, one behind the other.
Value scatter_lanes(const Value& x, const Value& indices, const Value& updates,
                    std::int64_t axis) {
  const Value front = move_axis(x, axis + 1, 1);
  const Shape lanes = front.shape();
  const Shape rest = dims_between(lanes, 2, front.rank());
  const Value flat = reshape(front, joined({{lanes[0] * lanes[1]}, rest}));
  // [n, before.., picks.., after..] -> [n, picks.., before.., after..]
  const std::int64_t picks = indices.rank() - 1;
  Ints order = {0};
  for (std::int64_t a = 0; a < picks; ++a) order.push_back(1 + axis + a);
  for (std::int64_t a = 0; a < axis; ++a) order.push_back(1 + a);
  for (std::int64_t a = 1 + picks + axis; a < updates.rank(); ++a) order.push_back(a);
  const Value y = scatter_add(flat, lane_indices("scatter_add", indices, lanes[1]),
                              transpose(updates, order), 0);
  return move_axis(reshape(y, lanes), 1, axis + 1);
}

BatchResult batch_scatter_add(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t axis = s.attrs.integer("axis");
  const std::int64_t n = batch_size(s.in, axes);
  const Value x = batch_in_front(s.in[0], axes[0], n);
  const Value updates = batch_in_front(s.in[2], axes[2], n);
  if (!axes[1]) return {{scatter_add(x, s.in[1], updates, axis + 1)}, {0}};
  return {{scatter_lanes(x, batch_in_front(s.in[1], axes[1], n), updates, axis)}, {0}};
}

PositionMap positions_scatter_add(const Signature& s) {
  const std::int64_t axis = s.attrs.integer("axis"), picks = s.in[1].rank();
  InputFlow f = identity_flow(s.in[0].rank());
  f.axes[static_cast<std::size_t>(axis)] =
      picks > 0 ? AxisFlow{Flow::mixed, axis} : AxisFlow{Flow::fresh, -1};
  for (std::int64_t a = axis + 1; a < s.in[0].rank(); ++a)
    f.axes[static_cast<std::size_t>(a)].in_axis = a - 1 + picks;
  return {{{identity_flow(s.in[0].rank())}, {no_flow()}, {f}}};
}

}  // namespace

const OpDef scatter_add_op = {
    .name = "scatter_add",
    .arity = 3,
    .attrs = {{"axis", AttrKind::integer}},
    .infer = infer_scatter_add,
    .eval = eval_scatter_add,
    .lower = lower_scatter_add,
    .code = "scatter_add($0, $1, $2, {axis})",
    .jvp = jvp_scatter_add,
    .transpose = transpose_scatter_add,
    .batch = batch_scatter_add,
    .positions = positions_scatter_add,
};

Value scatter_add(Arg x, Arg indices, Arg updates, std::int64_t axis) {
  const Value index = settle(indices);
  const std::int64_t a = normalize_axis("scatter_add", axis, x.value.rank());
  const Shape want = picked_shape(x.value.shape(), index.shape(), a);
  const Value v = settle(x);
  const DType dtype =
      updates.weak ? v.dtype() : promote(v.dtype(), updates.value.dtype());
  Arg base = x, added = updates;
  base.value = v;
  base.weak = false;
  base.value = astype(base, dtype);
  added.value = astype(updates, dtype);
  added.weak = false;
  return emit1(scatter_add_op, {base.value, index, broadcast_to(added, want)},
               {{"axis", a}}, x.loc);
}

}  // namespace braintrace
