// SPDX-License-Identifier: Apache-2.0
// Permutes the axes: output axis i is input axis permutation[i].
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

std::vector<Type> infer_transpose(std::span<const Type> in, const Attrs& attrs) {
  const Ints& permutation = attrs.ints("permutation");
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  BT_REQUIRE(sorted == iota_ints(in[0].rank()),
             fmt::format("transpose: {} is not a permutation of the {} axes of {}",
                         to_string(permutation), in[0].rank(), to_string(in[0])));
  Shape shape;
  for (std::int64_t a : permutation) shape.push_back(dim_at(in[0].shape, a));
  return {{in[0].dtype, shape}};
}

void eval_transpose(const Kernel& k) {
  k.out[0] = k.in[0].transposed(k.attrs.ints("permutation")).contiguous();
}

Lowering lower_transpose(const Signature& s) {
  return lowering::Transpose{s.attrs.ints("permutation")};
}

std::vector<Tangent> transpose_transpose(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  return {transpose(*ct[0], inverse(s.attrs.ints("permutation")))};
}

BatchResult batch_transpose(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t b = *axes[0];
  Ints permutation = {b};
  for (std::int64_t a : s.attrs.ints("permutation")) permutation.push_back(behind(a, b));
  return {{transpose(s.in[0], permutation)}, {0}};
}

PositionMap positions_transpose(const Signature& s) {
  InputFlow f;
  for (std::int64_t a : s.attrs.ints("permutation")) f.axes.push_back({Flow::same, a});
  return {{{f}}};
}

}  // namespace

const OpDef transpose_op = {
    .name = "transpose",
    .traits = Trait::linear,
    .attrs = {{"permutation", AttrKind::ints}},
    .infer = infer_transpose,
    .eval = eval_transpose,
    .lower = lower_transpose,
    .code = "transpose($0, {permutation})",
    .transpose = transpose_transpose,
    .batch = batch_transpose,
    .positions = positions_transpose,
    .simplify = simplify_transpose,
};

Value transpose(Arg x, Ints permutation) {
  const Value v = settle(x);
  const Ints in_order = iota_ints(v.rank());
  if (permutation.empty()) permutation.assign(in_order.rbegin(), in_order.rend());
  for (std::int64_t& a : permutation) a = normalize_axis("transpose", a, v.rank());
  if (permutation == in_order) return v;
  return emit1(transpose_op, {v}, {{"permutation", permutation}}, x.loc);
}

}  // namespace braintrace
