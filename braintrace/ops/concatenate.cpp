// SPDX-License-Identifier: Apache-2.0
// Joins arrays along one axis.
#include <cstring>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

std::vector<Type> infer_concatenate(std::span<const Type> in, const Attrs& attrs) {
  BT_REQUIRE(!in.empty(), "concatenate: needs at least one part");
  const std::int64_t axis = axis_attr("concatenate", attrs, in[0].rank());
  Type out = in[0];
  std::int64_t& length = out.shape[static_cast<std::size_t>(axis)];
  for (const Type& t : in.subspan(1)) {
    const bool fits = t.dtype == out.dtype && t.rank() == out.rank() &&
                      removed(t.shape, axis) == removed(out.shape, axis);
    BT_REQUIRE_KIND(fits, ErrorKind::type,
                    fmt::format("concatenate: parts may differ along axis {} only, got "
                                "{} and {}",
                                axis, to_string(in[0]), to_string(t)));
    length += dim_at(t.shape, axis);
    check_shape("concatenate", out.shape);
  }
  return {out};
}

void eval_concatenate(const Kernel& k) {
  const std::int64_t axis = k.attrs.integer("axis");
  const AxisSplit all = split_at(k.out[0].shape(), axis);
  const std::size_t row = static_cast<std::size_t>(all.inner) * size_of(k.out[0].dtype());
  auto* y = static_cast<std::byte*>(k.out[0].mutable_raw());
  std::size_t offset = 0;
  for (const Array& part : k.in) {
    const auto n = static_cast<std::size_t>(dim_at(part.shape(), axis));
    const auto* x = static_cast<const std::byte*>(part.raw());
    for (std::size_t o = 0; o < static_cast<std::size_t>(all.outer); ++o)
      std::memcpy(y + (o * static_cast<std::size_t>(all.n) + offset) * row,
                  x + o * n * row, n * row);
    offset += n;
  }
}

Lowering lower_concatenate(const Signature& s) {
  return lowering::Concatenate{s.attrs.integer("axis")};
}

std::vector<Tangent> transpose_concatenate(const Site& s, std::span<const Tangent> ct) {
  std::vector<Tangent> out(s.in.size());
  if (!ct[0]) return out;
  const std::int64_t axis = s.attrs.integer("axis");
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < s.in.size(); ++i) {
    const std::int64_t n = s.in[i].dim(axis);
    if (s.is_linear(i)) out[i] = slice_axis(*ct[0], axis, offset, n);
    offset += n;
  }
  return out;
}

BatchResult batch_concatenate(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t n = batch_size(s.in, axes);
  Values parts;
  for (std::size_t i = 0; i < s.in.size(); ++i)
    parts.push_back(batch_in_front(s.in[i], axes[i], n));
  return {{concat(parts, s.attrs.integer("axis") + 1)}, {0}};
}

PositionMap positions_concatenate(const Signature& s) {
  const std::int64_t axis = s.attrs.integer("axis");
  PositionMap map;
  std::int64_t offset = 0;
  for (const Type& t : s.in) {
    InputFlow f = identity_flow(t.rank());
    if (t.shape != s.out[0].shape)
      f.axes[static_cast<std::size_t>(axis)] = {Flow::shifted, axis, offset};
    map.flow.push_back({f});
    offset += dim_at(t.shape, axis);
  }
  return map;
}

}  // namespace

const OpDef concatenate_op = {
    .name = "concatenate",
    .traits = Trait::linear,
    .arity = kVariadic,
    .attrs = {{"axis", AttrKind::integer}},
    .infer = infer_concatenate,
    .eval = eval_concatenate,
    .lower = lower_concatenate,
    .code = "concatenate({axis}, $*)",
    .transpose = transpose_concatenate,
    .batch = batch_concatenate,
    .positions = positions_concatenate,
    .simplify = simplify_single_input,
};

Value concat(const Values& parts, std::int64_t axis, Loc loc) {
  BT_REQUIRE(!parts.empty(), "concat: needs at least one part");
  DType dtype = parts[0].dtype();
  for (const Value& p : parts)
    if (p.dtype() != dtype) dtype = promote(dtype, p.dtype());
  Values same;
  for (const Value& p : parts) same.push_back(astype({p, loc}, dtype));
  const std::int64_t at = normalize_axis("concat", axis, parts[0].rank());
  if (same.size() == 1) return same[0];
  return emit1(concatenate_op, same, {{"axis", at}}, loc);
}

Value stack(const Values& parts, std::int64_t axis, Loc loc) {
  BT_REQUIRE(!parts.empty(), "stack: needs at least one part");
  const std::int64_t at = normalize_axis("stack", axis, parts[0].rank() + 1);
  Values rows;
  for (const Value& p : parts) {
    BT_REQUIRE(p.shape() == parts[0].shape(),
               fmt::format("stack: parts must have one shape, got {} and {}",
                           to_string(parts[0].shape()), to_string(p.shape())));
    rows.push_back(expand_dims({p, loc}, at));
  }
  return concat(rows, at, loc);
}

}  // namespace braintrace
