// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/elementwise.h"

#include <fmt/format.h>

#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::string list_elementwise(std::span<const Type> in) {
  std::string text;
  for (const Type& t : in) text += (text.empty() ? "" : ", ") + to_string(t);
  return text;
}

void require_equal(std::span<const Type> in) {
  BT_REQUIRE(!in.empty(), "needs at least one input");
  for (const Type& t : in)
    BT_REQUIRE_KIND(
        t == in[0], ErrorKind::type,
        fmt::format("operands must have one type, got {}", list_elementwise(in)));
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

Value settle_float(const Arg& a) {
  const Value v = settle(a);
  return is_float(v.dtype()) ? v : astype(v, DType::f32);
}

Values broadcast_together(std::string_view who, Values values, const SourceLoc& loc) {
  Shape shape;
  for (const Value& v : values) {
    const auto joined = broadcast_shapes(shape, v.shape());
    BT_REQUIRE(joined, fmt::format("{}: shapes {} and {} do not broadcast{}", who,
                                   to_string(shape), to_string(v.shape()),
                                   loc ? fmt::format(" (at {})", to_string(loc)) : ""));
    shape = *joined;
  }
  const std::shared_ptr<Builder> trace = common_builder(values);
  for (Value& v : values) {
    if (v.shape() == shape) continue;
    if (trace && v.is_concrete()) v = trace->constant(v.array());
    v = emit1(broadcast_op, {v}, {{"shape", shape}}, loc);
  }
  return values;
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
  Values values;
  for (const Arg& a : args) values.push_back(astype(a, dtype));
  return {broadcast_together(who, std::move(values), args.at(0).loc), args.at(0).loc};
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

Value elementwise_boolean(const OpDef& op, std::vector<Arg> args) {
  for (Arg& a : args) {
    a.value = astype(a, DType::boolean);
    a.weak = false;
  }
  return elementwise(op, std::move(args));
}

void map_math(const Kernel& k, SimdFn f) {
  const auto n = static_cast<std::size_t>(k.out[0].size());
  if (k.out[0].dtype() == DType::f64)
    return simd_math(f, k.in[0].data<double>(), k.out[0].mutable_data<double>(), n);
  simd_math(f, k.in[0].data<float>(), k.out[0].mutable_data<float>(), n);
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
