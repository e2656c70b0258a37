// SPDX-License-Identifier: Apache-2.0
#pragma once
// What element-by-element op files share: type rules, eval loops, operand preparation.
#include "braintrace/array/simd_math.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

// ---- infer slots ----
std::vector<Type> same_type(std::span<const Type> in,
                            const Attrs&);  // any number of equal types
std::vector<Type> same_float(std::span<const Type> in,
                             const Attrs&);  // ... and f32 or f64
std::vector<Type> same_number(std::span<const Type> in,
                              const Attrs&);  // ... and not boolean
std::vector<Type> same_boolean(std::span<const Type> in, const Attrs&);
std::vector<Type> comparison(std::span<const Type> in,
                             const Attrs&);  // equal types -> boolean

// ---- operand preparation ----
// Turns weak numbers into the type of the others, promotes, broadcasts.
struct Operands {
  Values values;
  SourceLoc loc;
};
Operands prepare(std::string_view who, std::vector<Arg> args);
// Stretches all values to their common shape. Next to symbolic values a constant is
// recorded as it is and stretched by a node, so programs never hold repeated numbers.
Values broadcast_together(std::string_view who, Values values, const SourceLoc& loc);
// Element-wise op on prepared operands.
Value elementwise(const OpDef& op, std::vector<Arg> args);
// Same, with integer and boolean operands taken to f32 first.
Value elementwise_float(const OpDef& op, std::vector<Arg> args);
// Same, with numbers taken to booleans first: true when not 0.
Value elementwise_boolean(const OpDef& op, std::vector<Arg> args);
// The value of one argument; a weak number becomes f32 (or i32).
Value settle(const Arg& a);
// Same, with integers and booleans taken to f32.
Value settle_float(const Arg& a);

// ---- lowering ----
template <MicroOp m>
Lowering micro(const Signature&) {
  return lowering::Elementwise{m};
}

// ---- eval loops (same type in and out) ----
template <class T, class F>
void map1(const Kernel& k, F f) {
  const T* x = k.in[0].data<T>();
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t i = 0, n = k.out[0].size(); i < n; ++i) y[i] = f(x[i]);
}
template <class T, class F>
void map2(const Kernel& k, F f) {
  const T* a = k.in[0].data<T>();
  const T* b = k.in[1].data<T>();
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t i = 0, n = k.out[0].size(); i < n; ++i) y[i] = f(a[i], b[i]);
}

// Needs: same_float as infer.
template <class F>
void map_float(const Kernel& k, F f) {
  if (k.out[0].dtype() == DType::f64) return map1<double>(k, f);
  map1<float>(k, f);
}
template <class F>
void map2_float(const Kernel& k, F f) {
  if (k.out[0].dtype() == DType::f64) return map2<double>(k, f);
  map2<float>(k, f);
}
// Needs: same_number as infer. f must be callable with float, double and int32.
template <class F>
void map_number(const Kernel& k, F f) {
  if (k.out[0].dtype() == DType::i32) return map1<std::int32_t>(k, f);
  map_float(k, f);
}
template <class F>
void map2_number(const Kernel& k, F f) {
  if (k.out[0].dtype() == DType::i32) return map2<std::int32_t>(k, f);
  map2_float(k, f);
}
// An elementary function, by the routine every executor shares. Needs: same_float.
void map_math(const Kernel& k, SimdFn f);
// Any type in, boolean out.
template <class F>
void compare(const Kernel& k, F f) {
  visit_dtype(k.in[0].dtype(), [&]<class T>(T) {
    const T* a = k.in[0].data<T>();
    const T* b = k.in[1].data<T>();
    bool* y = k.out[0].mutable_data<bool>();
    for (std::int64_t i = 0, n = k.out[0].size(); i < n; ++i) y[i] = f(a[i], b[i]);
  });
}

// jvp of f(x) with derivative d: d * dx, absent when dx is.
std::vector<Tangent> scaled(const Tangent& dx, const Value& d);
// The sum of two tangents, either of which may be absent.
Tangent sum_tangents(const Tangent& a, const Tangent& b);

}  // namespace braintrace
