// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/reduce.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"

namespace braintrace {
namespace {

Shape with_ones(Shape x, const Ints& axes) {
  for (std::int64_t a : axes) x[static_cast<std::size_t>(a)] = 1;
  return x;
}

}  // namespace

Ints kept_axes(std::int64_t rank, const Ints& axes) {
  Ints kept;
  for (std::int64_t a = 0; a < rank; ++a)
    if (!contains(axes, a)) kept.push_back(a);
  return kept;
}

std::vector<Type> reduced_type(std::span<const Type> in, const Attrs& attrs) {
  const Ints& axes = attrs.ints("axes");
  BT_REQUIRE_KIND(is_float(in[0].dtype) || in[0].dtype == DType::i32, ErrorKind::type,
                  fmt::format("needs f32, f64 or i32, got {}", to_string(in[0])));
  const bool in_range = axes.empty() || (axes.front() >= 0 && axes.back() < in[0].rank());
  BT_REQUIRE(in_range && std::is_sorted(axes.begin(), axes.end()) &&
                 std::adjacent_find(axes.begin(), axes.end()) == axes.end(),
             fmt::format("axes must be sorted, distinct axes of {}, got {}",
                         to_string(in[0]), to_string(axes)));
  Type out{in[0].dtype, {}};
  for (std::int64_t a : kept_axes(in[0].rank(), axes))
    out.shape.push_back(dim_at(in[0].shape, a));
  return {out};
}

std::vector<Type> reduced_type_nonempty(std::span<const Type> in, const Attrs& attrs) {
  std::vector<Type> out = reduced_type(in, attrs);
  for (std::int64_t a : attrs.ints("axes"))
    BT_REQUIRE(is_float(in[0].dtype) || dim_at(in[0].shape, a) > 0,
               fmt::format("integers have no extreme of no elements, got {} "
                           "with axes {}",
                           to_string(in[0]), to_string(attrs.ints("axes"))));
  return out;
}

BatchResult batch_reduction(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t b = *axes[0];
  Ints shifted;
  std::int64_t place = b;
  for (std::int64_t a : s.attrs.ints("axes")) {
    shifted.push_back(behind(a, b));
    if (a < b) --place;
  }
  return {emit(s.op, {s.in[0]}, {{"axes", shifted}}, s.loc), {place}};
}

PositionMap reduction_positions(const Signature& s) {
  InputFlow f;
  for (std::int64_t a : kept_axes(s.in[0].rank(), s.attrs.ints("axes")))
    f.axes.push_back({Flow::same, a});
  return {{{f}}};
}

Value reduce(const OpDef& op, const Arg& x, const ReduceOptions& options) {
  Arg arg = x;
  arg.value = settle(x);
  arg.weak = false;
  if (arg.value.dtype() == DType::boolean) arg.value = astype(arg, DType::i32);
  const Shape from = arg.value.shape();
  const auto rank = static_cast<std::int64_t>(from.size());
  const Ints axes = options.axes.empty() ? iota_ints(rank)
                                         : normalize_axes(op.name, options.axes, rank);
  if (axes.empty()) return arg.value;
  arg.value = emit1(op, {arg.value}, {{"axes", axes}}, x.loc);
  return options.keepdims ? reshape(arg, with_ones(from, axes)) : arg.value;
}

Value spread_back(const Value& y, const Shape& x, const Ints& axes) {
  return broadcast_to(reshape(y, with_ones(x, axes)), x);
}

ReductionRows rows_of(const Kernel& k) {
  const Array& x = k.in[0];
  const Ints& axes = k.attrs.ints("axes");
  Ints order = kept_axes(x.rank(), axes);
  order.insert(order.end(), axes.begin(), axes.end());
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= dim_at(x.shape(), a);
  return {x.transposed(order).contiguous(), k.out[0].size(), n};
}

}  // namespace braintrace
