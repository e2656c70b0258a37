// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/simplify.h"

#include <cmath>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

// Bits decide: -0.0 is not 0.0.
bool is_all(const Value& v, double number) {
  const std::optional<double> x = splat_value(v);
  return x && *x == number && std::signbit(*x) == std::signbit(number);
}

// The node behind input i when it is the same op as the site's.
const Node* same_op_before(const Site& s, std::size_t i = 0) {
  const Node* n = producer(s.in[i]);
  return n && n->op == &s.op ? n : nullptr;
}

Value input_of(const Site& s, const Node& n) { return {s.in[0].builder(), n.inputs[0]}; }

bool same_value(const Value& a, const Value& b) {
  return !a.is_concrete() && a.builder() == b.builder() && a.id() == b.id();
}

}  // namespace

std::optional<double> splat_value(const Value& v) {
  if (const auto a = literal(v)) {
    if (a->size() == 0) return std::nullopt;
    const double first = a->at(0);
    if (a->at(a->size() - 1) != first)
      return std::nullopt;  // most arrays: no look at all
    if (*a == full(a->shape(), first, a->dtype())) return first;
    return std::nullopt;
  }
  const Node* n = producer(v);
  const auto is = [&](const OpDef& op) { return n->op == &op; };
  if (!n || !(is(broadcast_op) || is(reshape_op) || is(transpose_op)))
    return std::nullopt;
  return splat_value({v.builder(), n->inputs[0]});
}

Rewrite simplify_add(const Site& s) {
  const double zero = is_float(s.in[0].dtype()) ? -0.0 : 0.0;
  if (is_all(s.in[1], zero)) return {{s.in[0]}};
  if (is_all(s.in[0], zero)) return {{s.in[1]}};
  return std::nullopt;
}

Rewrite simplify_sub(const Site& s) {
  if (is_all(s.in[1], 0.0)) return {{s.in[0]}};
  return std::nullopt;
}

Rewrite simplify_mul(const Site& s) {
  if (is_all(s.in[1], 1.0)) return {{s.in[0]}};
  if (is_all(s.in[0], 1.0)) return {{s.in[1]}};
  return std::nullopt;
}

Rewrite simplify_by_one(const Site& s) {
  if (is_all(s.in[1], 1.0)) return {{s.in[0]}};
  return std::nullopt;
}

Rewrite simplify_involution(const Site& s) {
  const Node* n = same_op_before(s);
  if (!n || n->attrs != s.attrs) return std::nullopt;
  return {{input_of(s, *n)}};
}

Rewrite simplify_idempotent(const Site& s) {
  const Node* n = same_op_before(s);
  if (!n || n->attrs != s.attrs) return std::nullopt;
  return {{s.in[0]}};
}

Rewrite simplify_same_type(const Site& s) {
  const Type t = s.in[0].type();
  if (infer_types(s.op, std::span(&t, 1), s.attrs)[0] == t) return {{s.in[0]}};
  return std::nullopt;
}

Rewrite simplify_convert(const Site& s) {
  const DType to = s.attrs.dtype("dtype");
  if (s.in[0].dtype() == to) return {{s.in[0]}};
  const Node* n = same_op_before(s);
  if (!n || s.in[0].dtype() != DType::f64) return std::nullopt;
  const Value x = input_of(s, *n);
  if (x.dtype() != to || (to != DType::f32 && to != DType::i32)) return std::nullopt;
  return {{x}};
}

Rewrite simplify_reshape(const Site& s) {
  if (Rewrite r = simplify_same_type(s)) return r;
  const Node* n = same_op_before(s);
  if (!n) return std::nullopt;
  const Value x = input_of(s, *n);
  if (x.shape() == s.attrs.ints("shape")) return {{x}};
  return emit(s.op, {x}, s.attrs, s.loc);
}

Rewrite simplify_broadcast(const Site& s) { return simplify_reshape(s); }

Rewrite simplify_transpose(const Site& s) {
  const Ints& outer = s.attrs.ints("permutation");
  if (outer == iota_ints(s.in[0].rank())) return {{s.in[0]}};
  const Node* n = same_op_before(s);
  if (!n) return std::nullopt;
  const Ints inner = n->attrs.ints("permutation");
  const Value x = input_of(s, *n);
  Ints both;
  for (std::int64_t axis : outer) both.push_back(inner[static_cast<std::size_t>(axis)]);
  if (both == iota_ints(x.rank())) return {{x}};
  return emit(s.op, {x}, {{"permutation", both}}, s.loc);
}

Rewrite simplify_select(const Site& s) {
  if (same_value(s.in[1], s.in[2])) return {{s.in[1]}};
  const std::optional<double> p = splat_value(s.in[0]);
  if (!p) return std::nullopt;
  return {{*p != 0 ? s.in[1] : s.in[2]}};
}

Rewrite simplify_single_input(const Site& s) {
  if (s.in.size() == 1) return {{s.in[0]}};
  return std::nullopt;
}

}  // namespace braintrace
