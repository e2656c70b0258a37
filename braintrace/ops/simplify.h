// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpDef::simplify slots: identities that hold bit for bit in IEEE arithmetic.
#include "braintrace/ir/op_def.h"

namespace braintrace {

// The one number all elements of v have (a constant, also spread or reshaped), else
// nullopt.
std::optional<double> splat_value(const Value& v);

Rewrite simplify_add(const Site& s);         // x + (-0.0); integers: x + 0
Rewrite simplify_sub(const Site& s);         // x - 0.0
Rewrite simplify_mul(const Site& s);         // x * 1
Rewrite simplify_by_one(const Site& s);      // x / 1, x ** 1
Rewrite simplify_involution(const Site& s);  // f(f(x)) = x
Rewrite simplify_idempotent(const Site& s);  // f(f(x)) = f(x)
Rewrite simplify_same_type(const Site& s);   // only moves data: same type = same values
Rewrite simplify_convert(const Site& s);     // same type; there and back through a wider
Rewrite simplify_reshape(const Site& s);     // same shape; reshape of reshape
Rewrite simplify_broadcast(const Site& s);   // same shape; broadcast of broadcast
Rewrite simplify_transpose(const Site& s);   // identity; transpose of transpose
Rewrite simplify_select(const Site& s);      // constant predicate; equal sides
Rewrite simplify_single_input(const Site& s);  // of one input: that input

}  // namespace braintrace
