// SPDX-License-Identifier: Apache-2.0
// Surrounds x by `low` and `high` elements of `value` per axis, and puts `interior` of
// them between neighbours.
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;

void require_amounts(const Shape& x, const Ints& amounts, std::string_view name) {
  BT_REQUIRE(amounts.size() == x.size(),
             fmt::format("pad: {} needs {} entries for {}, got {}", name, x.size(),
                         to_string(x), to_string(amounts)));
  for (std::int64_t a : amounts)
    BT_REQUIRE(a >= 0 && a <= kLargest,
               fmt::format("pad: {} must be >= 0 and at most 2^40, got {}", name,
                           to_string(amounts)));
}

void require_value(DType dtype, double value) {
  const bool integer = std::trunc(value) == value && std::abs(value) <= 0x1p31 - 1;
  BT_REQUIRE(is_float(dtype) || dtype == DType::bf16 || integer,
             fmt::format("pad: value {} does not fit {}", value, to_string(dtype)));
}

std::vector<Type> infer_pad(std::span<const Type> in, const Attrs& attrs) {
  const Shape& x = in[0].shape;
  const Ints &low = attrs.ints("low"), &high = attrs.ints("high"),
             &interior = attrs.ints("interior");
  require_amounts(x, low, "low");
  require_amounts(x, high, "high");
  require_amounts(x, interior, "interior");
  require_value(in[0].dtype, attrs.real("value"));
  Shape shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t gaps = x[i] > 0 ? x[i] - 1 : 0;
    BT_REQUIRE(gaps == 0 || interior[i] <= kLargest / gaps,
               fmt::format("pad: interior {} is too large for {}", to_string(interior),
                           to_string(x)));
    shape.push_back(low[i] + x[i] + gaps * interior[i] + high[i]);
  }
  return {{in[0].dtype, shape}};
}

void eval_pad(const Kernel& k) {
  const Array& x = k.in[0];
  Array y = full(k.out[0].shape(), k.attrs.real("value"), x.dtype());
  const Ints &low = k.attrs.ints("low"), &interior = k.attrs.ints("interior");
  const Ints strides = row_major_strides(y.shape());
  const std::size_t bytes = size_of(x.dtype());
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(y.mutable_raw());
  for (std::int64_t i = 0, n = x.size(); i < n; ++i) {
    std::int64_t rest = i, place = 0;
    for (std::size_t a = strides.size(); a-- > 0;) {
      place += (low[a] + rest % x.shape()[a] * (interior[a] + 1)) * strides[a];
      rest /= x.shape()[a];
    }
    std::memcpy(to + static_cast<std::size_t>(place) * bytes,
                from + static_cast<std::size_t>(i) * bytes, bytes);
  }
  k.out[0] = y;
}

Lowering lower_pad(const Signature& s) {
  return lowering::Pad{s.attrs.ints("low"), s.attrs.ints("interior"),
                       s.attrs.real("value")};
}

// The padding itself is constant.
std::vector<Tangent> jvp_pad(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  return {pad(*dx[0], s.attrs.ints("low"), s.attrs.ints("high"), 0,
              s.attrs.ints("interior"))};
}

std::vector<Tangent> transpose_pad(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  Ints step = s.attrs.ints("interior");
  for (std::int64_t& i : step) ++i;
  return {slice(*ct[0], s.attrs.ints("low"), s.in[0].shape(), step)};
}

BatchResult batch_pad(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t b = *axes[0];
  const Value y = pad(s.in[0], inserted(s.attrs.ints("low"), b, 0),
                      inserted(s.attrs.ints("high"), b, 0), s.attrs.real("value"),
                      inserted(s.attrs.ints("interior"), b, 0));
  return {{y}, {b}};
}

PositionMap positions_pad(const Signature& s) {
  const Ints &low = s.attrs.ints("low"), &interior = s.attrs.ints("interior");
  InputFlow f;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    if (s.in[0].shape[i] == s.out[0].shape[i]) {
      f.axes.push_back({Flow::same, axis});
    } else {
      f.axes.push_back({Flow::shifted, axis, low[i], interior[i] + 1});
    }
  }
  return {{{f}}};
}

}  // namespace

// Affine, and linear only for value 0, so the trait is left out.
const OpDef pad_op = {
    .name = "pad",
    .attrs = {{"high", AttrKind::ints},
              {"interior", AttrKind::ints},
              {"low", AttrKind::ints},
              {"value", AttrKind::real}},
    .infer = infer_pad,
    .eval = eval_pad,
    .lower = lower_pad,
    .code = "pad($0, {low}, {high}, {value}, {interior})",
    .jvp = jvp_pad,
    .transpose = transpose_pad,
    .batch = batch_pad,
    .positions = positions_pad,
    .simplify = simplify_same_type,
};

Value pad(Arg x, const Ints& low, const Ints& high, double value, Ints interior) {
  const Value v = settle(x);
  if (interior.empty()) interior.assign(low.size(), 0);
  const Ints none(v.shape().size(), 0);
  if (low == none && high == none && interior == none) return v;
  return emit1(pad_op, {v},
               {{"high", high}, {"interior", interior}, {"low", low}, {"value", value}},
               x.loc);
}

}  // namespace braintrace
