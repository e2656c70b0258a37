// SPDX-License-Identifier: Apache-2.0
// Product over axes, from left to right. f32 is multiplied in double; i32 wraps around.
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/reduce.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_reduce_prod(const Kernel& k) {
  const ReductionRows r = rows_of(k);
  const auto times = [](auto a, auto b) { return a * b; };
  if (k.out[0].dtype() == DType::i32)
    return fold_rows<std::int32_t, std::uint32_t>(k, r, 1u, times);
  if (k.out[0].dtype() == DType::f64) return fold_rows<double, double>(k, r, 1.0, times);
  fold_rows<float, double>(k, r, 1.0, times);
}

// x[.., j] -> x[.., j - by], ones where nothing arrives.
Value moved_right(const Value& x, std::int64_t by) {
  const std::int64_t last = x.rank() - 1;
  Ints low(x.shape().size(), 0);
  const Ints none = low;
  low.back() = by;
  return pad(slice_axis(x, last, 0, x.dim(last) - by), low, none, 1);
}

// Product of all elements before each one along the last axis, in log2(n) doublings.
Value product_before(const Value& x) {
  const std::int64_t n = x.dim(-1);
  Value p = moved_right(x, 1);
  for (std::int64_t by = 1; by < n - 1; by *= 2) p = p * moved_right(p, by);
  return p;
}

// Product of all the other elements along the last axis; no division, so zeros are safe.
Value product_of_others(const Value& x) {
  if (x.dim(-1) == 0) return x;
  const Ints last = {x.rank() - 1};
  return product_before(x) * flip(product_before(flip(x, last)), last);
}

std::vector<Tangent> jvp_reduce_prod(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  const Value& x = s.in[0];
  const Ints& axes = s.attrs.ints("axes");
  if (axes.empty()) return {dx[0]};
  Ints order = kept_axes(x.rank(), axes);
  order.insert(order.end(), axes.begin(), axes.end());
  const Value rows = transpose(x, order);
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= x.dim(a);
  const Value flat = reshape(rows, joined({s.out[0].shape(), {n}}));
  const Value others =
      transpose(reshape(product_of_others(flat), rows.shape()), inverse(order));
  return {sum(others * *dx[0], {.axes = axes})};
}

}  // namespace

const OpDef reduce_prod_op = {
    .name = "reduce_prod",
    .attrs = {{"axes", AttrKind::ints}},
    .infer = reduced_type,
    .eval = eval_reduce_prod,
    .lower = lower_reduction<ReduceKind::prod>,
    .code = "prod($0, {axes})",
    .jvp = jvp_reduce_prod,
    .batch = batch_reduction,
    .positions = reduction_positions,
    .simplify = simplify_same_type,
};

Value prod(Arg x, ReduceOptions options) { return reduce(reduce_prod_op, x, options); }

}  // namespace braintrace
