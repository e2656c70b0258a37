// SPDX-License-Identifier: Apache-2.0
// The same elements in row-major order under another shape.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

std::vector<Type> infer_reshape(std::span<const Type> in, const Attrs& attrs) {
  const Shape& shape = attrs.ints("shape");
  check_shape("reshape", shape);
  BT_REQUIRE(num_elements(shape) == in[0].size(),
             fmt::format("reshape: {} has {} elements, {} has {}", to_string(in[0].shape),
                         in[0].size(), to_string(shape), num_elements(shape)));
  return {{in[0].dtype, shape}};
}

void eval_reshape(const Kernel& k) { k.out[0] = k.in[0].reshaped(k.attrs.ints("shape")); }

Lowering lower_reshape(const Signature&) { return lowering::Reshape{}; }

std::vector<Tangent> transpose_reshape(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  return {reshape(*ct[0], s.in[0].shape())};
}

BatchResult batch_reshape(const Site& s, std::span<const BatchAxis> axes) {
  const Value x = move_axis(s.in[0], *axes[0], 0);
  return {{reshape(x, inserted(s.attrs.ints("shape"), 0, x.dim(0)))}, {0}};
}

// Consecutive axes of both sides that hold the same elements: input axes [i, i_end)
// become output axes [o, o_end).
struct AxisGroup {
  std::size_t i, i_end, o, o_end;
};

// Needs: equal, non-zero element counts, and neither in[i] nor out[o] is 1.
AxisGroup next_group(const Shape& in, const Shape& out, std::size_t i, std::size_t o) {
  AxisGroup g{i, i + 1, o, o + 1};
  std::int64_t left = in[i], right = out[o];
  while (left != right) {
    if (left < right) {
      left *= in[g.i_end++];
    } else {
      right *= out[g.o_end++];
    }
  }
  return g;
}

void add_group(InputFlow& f, const AxisGroup& g) {
  const bool one_to_one = g.i_end - g.i == 1 && g.o_end - g.o == 1;
  for (std::size_t o = g.o; o < g.o_end; ++o) {
    const std::size_t i = std::min(g.i + (o - g.o), g.i_end - 1);
    f.axes.push_back(
        {one_to_one ? Flow::same : Flow::mixed, static_cast<std::int64_t>(i)});
  }
}

// Axes that only gain or lose neighbours of size 1 stay themselves; axes that are merged
// or split mix. Axes of size 1 pair up in order, so that a batch of one keeps its axis.
PositionMap positions_reshape(const Signature& s) {
  const Shape& in = s.in[0].shape;
  const Shape& out = s.out[0].shape;
  if (in == out) return {{{identity_flow(s.in[0].rank())}}};
  if (s.in[0].size() == 0) return {{{no_flow()}}};
  InputFlow f;
  std::size_t i = 0, o = 0;
  while (i < in.size() || o < out.size()) {
    const bool in_one = i < in.size() && in[i] == 1;
    const bool out_one = o < out.size() && out[o] == 1;
    if (!in_one && !out_one) {
      const AxisGroup g = next_group(in, out, i, o);
      add_group(f, g);
      i = g.i_end;
      o = g.o_end;
      continue;
    }
    if (out_one)
      f.axes.push_back(in_one ? AxisFlow{Flow::same, static_cast<std::int64_t>(i)}
                              : AxisFlow{Flow::fresh, -1});
    i += in_one;
    o += out_one;
  }
  return {{{f}}};
}

// Replaces the one entry that is -1 by what the other entries leave over.
Shape complete(Shape shape, const Shape& from) {
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open == shape.end()) return shape;
  const std::string asked = to_string(shape);
  *open = 1;
  check_shape("reshape", shape);  // also refuses a second -1
  const std::int64_t rest = num_elements(shape), all = num_elements(from);
  BT_REQUIRE(rest > 0 && all % rest == 0,
             fmt::format("reshape: {} cannot fill {}", to_string(from), asked));
  *open = all / rest;
  return shape;
}

}  // namespace

const OpDef reshape_op = {
    .name = "reshape",
    .traits = Trait::linear,
    .attrs = {{"shape", AttrKind::ints}},
    .infer = infer_reshape,
    .eval = eval_reshape,
    .lower = lower_reshape,
    .code = "reshape($0, {shape})",
    .transpose = transpose_reshape,
    .batch = batch_reshape,
    .positions = positions_reshape,
    .simplify = simplify_reshape,
};

Value reshape(Arg x, const Shape& shape) {
  const Value v = settle(x);
  const Shape from = v.shape();
  const Shape to = complete(shape, from);
  if (to == from) return v;
  return emit1(reshape_op, {v}, {{"shape", to}}, x.loc);
}

Value expand_dims(Arg x, std::int64_t axis) {
  const Shape from = x.value.shape();
  const std::int64_t at = normalize_axis("expand_dims", axis, x.value.rank() + 1);
  return reshape(x, inserted(from, at, 1));
}

Value squeeze(Arg x, std::int64_t axis) {
  const Shape from = x.value.shape();
  const std::int64_t at = normalize_axis("squeeze", axis, x.value.rank());
  BT_REQUIRE(dim_at(from, at) == 1,
             fmt::format("squeeze: axis {} must have size 1, got shape {}", axis,
                         to_string(from)));
  return reshape(x, removed(from, at));
}

}  // namespace braintrace
