// SPDX-License-Identifier: Apache-2.0
// A strided window: y[p] = x[start + p * step], axis by axis.
#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

// Written so that hostile numbers cannot overflow.
bool fits(std::int64_t dim, std::int64_t start, std::int64_t size, std::int64_t step) {
  if (start < 0 || size < 0 || step < 1 || start > dim) return false;
  return size == 0 || (start < dim && size - 1 <= (dim - 1 - start) / step);
}

std::vector<Type> infer_slice(std::span<const Type> in, const Attrs& attrs) {
  const Shape& x = in[0].shape;
  const Ints &start = attrs.ints("start"), &size = attrs.ints("size"),
             &step = attrs.ints("step");
  BT_REQUIRE(
      start.size() == x.size() && size.size() == x.size() && step.size() == x.size(),
      fmt::format("slice: start, size and step need {} entries each for {}, got {}, {} "
                  "and {}",
                  x.size(), to_string(x), start.size(), size.size(), step.size()));
  for (std::size_t i = 0; i < x.size(); ++i)
    BT_REQUIRE(
        fits(x[i], start[i], size[i], step[i]),
        fmt::format("slice: axis {} of {} does not hold start {}, size {}, step {}", i,
                    to_string(x), start[i], size[i], step[i]));
  return {{in[0].dtype, size}};
}

void eval_slice(const Kernel& k) {
  k.out[0] =
      k.in[0]
          .sliced(k.attrs.ints("start"), k.attrs.ints("size"), k.attrs.ints("step"))
          .contiguous();
}

Lowering lower_slice(const Signature& s) {
  return lowering::Slice{s.attrs.ints("start"), s.attrs.ints("step")};
}

std::vector<Tangent> transpose_slice(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  const Shape x = s.in[0].shape();
  const Ints &start = s.attrs.ints("start"), &size = s.attrs.ints("size"),
             &step = s.attrs.ints("step");
  Ints high, interior;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t covered = size[i] == 0 ? 0 : (size[i] - 1) * step[i] + 1;
    high.push_back(x[i] - start[i] - covered);
    interior.push_back(step[i] - 1);
  }
  return {pad(*ct[0], start, high, 0, interior)};
}

BatchResult batch_slice(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t b = *axes[0];
  const Value y = slice(s.in[0], inserted(s.attrs.ints("start"), b, 0),
                        inserted(s.attrs.ints("size"), b, s.in[0].dim(b)),
                        inserted(s.attrs.ints("step"), b, 1));
  return {{y}, {b}};
}

PositionMap positions_slice(const Signature& s) {
  const Shape& x = s.in[0].shape;
  const Ints &start = s.attrs.ints("start"), &size = s.attrs.ints("size"),
             &step = s.attrs.ints("step");
  InputFlow f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    if (size[i] == x[i]) {
      f.axes.push_back({Flow::same, axis});
    } else if (step[i] == 1 || size[i] <= 1) {
      f.axes.push_back({Flow::shifted, axis, -start[i]});
    } else {
      f.axes.push_back({Flow::mixed, axis});  // a stride does not fit `shifted`
    }
  }
  return {{{f}}};
}

}  // namespace

const OpDef slice_op = {
    .name = "slice",
    .traits = Trait::linear,
    .attrs = {{"size", AttrKind::ints},
              {"start", AttrKind::ints},
              {"step", AttrKind::ints}},
    .infer = infer_slice,
    .eval = eval_slice,
    .lower = lower_slice,
    .code = "slice($0, {start}, {size}, {step})",
    .transpose = transpose_slice,
    .batch = batch_slice,
    .positions = positions_slice,
    .simplify = simplify_same_type,
};

Value slice(Arg x, const Ints& start, const Shape& size, Ints step) {
  const Value v = settle(x);
  if (step.empty()) step.assign(size.size(), 1);
  const bool whole =
      size == v.shape() && start == Ints(size.size(), 0) && step == Ints(size.size(), 1);
  if (whole) return v;
  return emit1(slice_op, {v}, {{"size", size}, {"start", start}, {"step", step}}, x.loc);
}

Value slice_axis(Arg x, std::int64_t axis, std::int64_t start, std::int64_t size) {
  Shape sizes = x.value.shape();
  Ints starts(sizes.size(), 0);
  const auto a =
      static_cast<std::size_t>(normalize_axis("slice_axis", axis, x.value.rank()));
  starts[a] = start;
  sizes[a] = size;
  return slice(x, starts, sizes);
}

}  // namespace braintrace
