// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/elementwise.h"

#include <fmt/format.h>

namespace braintrace {
namespace {

std::string list(std::span<const Type> in) {
  std::string text;
  for (const Type& t : in) text += (text.empty() ? "" : ", ") + to_string(t);
  return text;
}

void require_equal(std::span<const Type> in) {
  BT_REQUIRE(!in.empty(), "needs at least one input");
  for (const Type& t : in)
    BT_REQUIRE_KIND(t == in[0], ErrorKind::type,
                    fmt::format("operands must have one type, got {}", list(in)));
}

void require_computable(std::span<const Type> in) {
  for (const Type& t : in)
    BT_REQUIRE_KIND(is_computable(t.dtype), ErrorKind::type,
                    "bf16 is a storage type: convert to f32 first");
}

}  // namespace

std::vector<Type> same_type(std::span<const Type> in, const Attrs&) {
  require_equal(in);
  require_computable(in);
  return {in[0]};
}

std::vector<Type> same_float(std::span<const Type> in, const Attrs&) {
  require_equal(in);
  BT_REQUIRE_KIND(is_float(in[0].dtype), ErrorKind::type,
                  fmt::format("needs f32 or f64, got {}", to_string(in[0])));
  return {in[0]};
}

std::vector<Type> same_number(std::span<const Type> in, const Attrs&) {
  require_equal(in);
  require_computable(in);
  BT_REQUIRE_KIND(in[0].dtype != DType::boolean, ErrorKind::type,
                  fmt::format("needs numbers, got {}", to_string(in[0])));
  return {in[0]};
}

std::vector<Type> same_boolean(std::span<const Type> in, const Attrs&) {
  require_equal(in);
  BT_REQUIRE_KIND(in[0].dtype == DType::boolean, ErrorKind::type,
                  fmt::format("needs booleans, got {}", to_string(in[0])));
  return {in[0]};
}

std::vector<Type> comparison(std::span<const Type> in, const Attrs&) {
  require_equal(in);
  require_computable(in);
  return {{DType::boolean, in[0].shape}};
}

Value settle(const Arg& a) {
  if (!a.weak || a.value.dtype() == DType::i32) return a.value;
  return a.value.array().astype(DType::f32);
}

Operands prepare(std::string_view who, std::vector<Arg> args) {
  std::optional<DType> strong;
  DType weak = DType::boolean;
  for (const Arg& a : args) {
    if (a.weak) {
      weak = promote(weak, a.value.dtype() == DType::i32 ? DType::i32 : DType::f32);
    } else {
      strong = strong ? promote(*strong, a.value.dtype())
                      : promote(a.value.dtype(), DType::boolean);
    }
  }
  // A bare number never widens a float, but 0.5 makes integers f32.
  DType dtype = strong.value_or(weak);
  if (!is_float(dtype)) dtype = promote(dtype, weak);
  Shape shape;
  for (const Arg& a : args) {
    const auto joined = broadcast_shapes(shape, a.value.shape());
    BT_REQUIRE(joined,
               fmt::format("{}: shapes {} and {} do not broadcast{}", who,
                           to_string(shape), to_string(a.value.shape()),
                           a.loc ? fmt::format(" (at {})", to_string(a.loc)) : ""));
    shape = *joined;
  }
  Operands out{.loc = args.at(0).loc};
  for (const Arg& a : args)
    out.values.push_back(broadcast_to({astype(a, dtype), {}}, shape));
  return out;
}

Value elementwise(const OpDef& op, std::vector<Arg> args) {
  Operands o = prepare(op.name, std::move(args));
  return emit1(op, std::move(o.values), {}, o.loc);
}

Value elementwise_float(const OpDef& op, std::vector<Arg> args) {
  Operands o = prepare(op.name, std::move(args));
  for (Value& v : o.values)
    if (!is_float(v.dtype())) v = astype(v, DType::f32);
  return emit1(op, std::move(o.values), {}, o.loc);
}

std::vector<Tangent> scaled(const Tangent& dx, const Value& d) {
  if (!dx) return {std::nullopt};
  return {d * *dx};
}

Tangent sum_tangents(const Tangent& a, const Tangent& b) {
  if (!a) return b;
  if (!b) return a;
  return *a + *b;
}

}  // namespace braintrace
