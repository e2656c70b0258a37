// SPDX-License-Identifier: Apache-2.0
// Plain loops, compiled once per instruction set: the compiler turns them into vector
// code that rounds like the scalar one (no contraction, no reassociation).
#include "braintrace/run/tile_kernels.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/tile_kernels.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "braintrace/array/simd_math.h"
#include "braintrace/run/tile_meaning_impl.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

using namespace meaning;
using Int = std::int32_t;

// An operand as a function of the position.
template <class T, bool scalar>
struct Reader {
  const T* p;
  T first;
  explicit Reader(const void* q)
      : p(static_cast<const T*>(q)), first(scalar ? *p : T()) {}
  T operator()(std::size_t i) const { return scalar ? first : p[i]; }
};

template <class T, class R, class F>
void loop1(const void* const* in, void* out, std::size_t n) {
  const T* a = static_cast<const T*>(in[0]);
  R* y = static_cast<R*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = F()(a[i]);
}

template <class T, class R, class F, unsigned S>
void loop2(const void* const* in, void* out, std::size_t n) {
  const Reader<T, (S & 1) != 0> a(in[0]);
  const Reader<T, (S & 2) != 0> b(in[1]);
  R* y = static_cast<R*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = F()(a(i), b(i));
}

template <class T, unsigned S>
void select_loop(const void* const* in, void* out, std::size_t n) {
  const auto* c = static_cast<const Byte*>(in[0]);
  const Reader<T, (S & 2) != 0> a(in[1]);
  const Reader<T, (S & 4) != 0> b(in[2]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const T yes = a(i), no = b(i);
    y[i] = c[i] != 0 ? yes : no;
  }
}

template <class T, unsigned S>
void product_and_sum(const void* const* in, void* out, std::size_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const Reader<T, (S & 2) != 0> b(in[1]);
  const Reader<T, (S & 4) != 0> c(in[2]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = a[i] * b(i) + c(i);
}

template <class T, unsigned S>
void sum_of_products(const void* const* in, void* out, std::size_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const Reader<T, (S & 2) != 0> b(in[1]);
  const T* c = static_cast<const T*>(in[2]);
  const Reader<T, (S & 8) != 0> d(in[3]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = a[i] * b(i) + c[i] * d(i);
}

template <class T>
TileKernel products(int count, unsigned scalars) {
  switch (scalars) {
    case 0:
      return count == 1 ? product_and_sum<T, 0> : sum_of_products<T, 0>;
    case 2:
      return count == 1 ? product_and_sum<T, 2> : sum_of_products<T, 2>;
    case 4:
      return count == 1 ? product_and_sum<T, 4> : nullptr;
    case 6:
      return count == 1 ? product_and_sum<T, 6> : nullptr;
    case 8:
      return count == 2 ? sum_of_products<T, 8> : nullptr;
    case 10:
      return count == 2 ? sum_of_products<T, 10> : nullptr;
    default:
      return nullptr;
  }
}

template <class T, unsigned S>
void clamp_loop(const void* const* in, void* out, std::size_t n) {
  const T* x = static_cast<const T*>(in[0]);
  const Reader<T, (S & 2) != 0> low(in[1]);
  const Reader<T, (S & 4) != 0> high(in[2]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const T l = low(i), h = high(i);
    const T raised = (x[i] < l) | (l != l) ? l : x[i];  // NaN bounds count
    y[i] = (raised > h) | (h != h) ? h : raised;
  }
}

template <std::size_t size>
void copy_bytes(const void* const* in, void* out, std::size_t n) {
  if (in[0] != out) std::memcpy(out, in[0], n * size);
}

void from_bf16(const void* const* in, void* out, std::size_t n) {
  const auto* x = static_cast<const BFloat16*>(in[0]);
  auto* y = static_cast<float*>(out);
  for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
}
void to_bf16(const void* const* in, void* out, std::size_t n) {
  const auto* x = static_cast<const float*>(in[0]);
  auto* y = static_cast<BFloat16*>(out);
  for (std::size_t i = 0; i < n; ++i) y[i] = BFloat16(x[i]);
}

template <class T, SimdFn f>
void math1(const void* const* in, void* out, std::size_t n) {
  simd_math(f, static_cast<const T*>(in[0]), static_cast<T*>(out), n);
}

template <class T>
void power(const void* const* in, void* out, std::size_t n) {
  simd_pow(static_cast<const T*>(in[0]), static_cast<const T*>(in[1]),
           static_cast<T*>(out), n);
}

// ---- choosing; operands and results as asked, null when there is none ----

template <class T, class R, class F>
TileKernel binary(unsigned scalars) {
  if (scalars == 0) return loop2<T, R, F, 0>;
  if constexpr (!std::is_same_v<T, Byte>) {
    if (scalars == 1) return loop2<T, R, F, 1>;
    if (scalars == 2) return loop2<T, R, F, 2>;
  }
  return nullptr;
}

template <class T>
TileKernel ternary(MicroOp op, unsigned scalars) {
  const bool pick = op == MicroOp::select;
  switch (scalars) {
    case 0:
      return pick ? select_loop<T, 0> : clamp_loop<T, 0>;
    case 2:
      return pick ? select_loop<T, 2> : nullptr;
    case 4:
      return pick ? select_loop<T, 4> : nullptr;
    case 6:
      return pick ? select_loop<T, 6> : clamp_loop<T, 6>;
    default:
      return nullptr;
  }
}

template <class T>
TileKernel comparison(MicroOp op, unsigned scalars) {
  switch (op) {
    case MicroOp::equal:
      return binary<T, Byte, Equal>(scalars);
    case MicroOp::not_equal:
      return binary<T, Byte, NotEqual>(scalars);
    case MicroOp::less:
      return binary<T, Byte, Less>(scalars);
    case MicroOp::less_equal:
      return binary<T, Byte, LessEqual>(scalars);
    case MicroOp::greater:
      return binary<T, Byte, Greater>(scalars);
    case MicroOp::greater_equal:
      return binary<T, Byte, GreaterEqual>(scalars);
    default:
      return nullptr;
  }
}

template <class T>
TileKernel number(MicroOp op, unsigned scalars) {
  switch (op) {
    case MicroOp::neg:
      return loop1<T, T, Neg>;
    case MicroOp::abs:
      return loop1<T, T, Abs>;
    case MicroOp::sign:
      return loop1<T, T, Sign>;
    case MicroOp::add:
      return binary<T, T, Add>(scalars);
    case MicroOp::sub:
      return binary<T, T, Sub>(scalars);
    case MicroOp::mul:
      return binary<T, T, Mul>(scalars);
    case MicroOp::max:
      return binary<T, T, Max>(scalars);
    case MicroOp::min:
      return binary<T, T, Min>(scalars);
    case MicroOp::select:
    case MicroOp::clamp:
      return ternary<T>(op, scalars);
    default:
      return nullptr;
  }
}

template <class T>
TileKernel real(MicroOp op, unsigned scalars) {
  switch (op) {
    case MicroOp::sqrt:
      return loop1<T, T, Sqrt>;
    case MicroOp::rsqrt:
      return loop1<T, T, Rsqrt>;
    case MicroOp::floor:
      return loop1<T, T, Floor>;
    case MicroOp::exp:
      return math1<T, SimdFn::exp>;
    case MicroOp::expm1:
      return math1<T, SimdFn::expm1>;
    case MicroOp::log:
      return math1<T, SimdFn::log>;
    case MicroOp::log1p:
      return math1<T, SimdFn::log1p>;
    case MicroOp::tanh:
      return math1<T, SimdFn::tanh>;
    case MicroOp::sigmoid:
      return math1<T, SimdFn::sigmoid>;
    case MicroOp::softplus:
      return math1<T, SimdFn::softplus>;
    case MicroOp::erf:
      return math1<T, SimdFn::erf>;
    case MicroOp::sin:
      return math1<T, SimdFn::sin>;
    case MicroOp::cos:
      return math1<T, SimdFn::cos>;
    case MicroOp::div:
      return binary<T, T, Div>(scalars);
    case MicroOp::pow:
      return scalars == 0 ? power<T> : nullptr;
    default:
      return number<T>(op, scalars);
  }
}

TileKernel boolean(MicroOp op, unsigned scalars) {
  switch (op) {
    case MicroOp::logical_not:
      return loop1<Byte, Byte, Not>;
    case MicroOp::logical_and:
      return binary<Byte, Byte, And>(scalars);
    case MicroOp::logical_or:
      return binary<Byte, Byte, Or>(scalars);
    case MicroOp::logical_xor:
      return binary<Byte, Byte, Xor>(scalars);
    case MicroOp::select:
      return ternary<Byte>(op, scalars);
    default:
      return comparison<Byte>(op, scalars);
  }
}

TileKernel copy(DType type) {
  switch (size_of(type)) {
    case 1:
      return copy_bytes<1>;
    case 2:
      return copy_bytes<2>;
    case 4:
      return copy_bytes<4>;
    default:
      return copy_bytes<8>;
  }
}

template <class T>
TileKernel convert_from(DType to) {
  switch (to) {
    case DType::boolean:
      return loop1<T, Byte, Convert<Byte>>;
    case DType::i32:
      return loop1<T, Int, Convert<Int>>;
    case DType::f32:
      return loop1<T, float, Convert<float>>;
    case DType::f64:
      return loop1<T, double, Convert<double>>;
    default:
      return std::is_same_v<T, float> ? to_bf16 : nullptr;
  }
}

TileKernel convert(DType from, DType to) {
  if (from == to) return copy(from);
  switch (from) {
    case DType::boolean:
      return convert_from<Byte>(to);
    case DType::i32:
      return convert_from<Int>(to);
    case DType::f32:
      return convert_from<float>(to);
    case DType::f64:
      return convert_from<double>(to);
    default:
      return to == DType::f32 ? from_bf16 : nullptr;
  }
}

template <class T>
TileKernel of_type(MicroOp op, DType operand, DType result, unsigned scalars) {
  if (result == DType::boolean) return comparison<T>(op, scalars);
  if (result != operand) return nullptr;
  if constexpr (std::is_same_v<T, Int>) {
    return number<T>(op, scalars);
  } else {
    return real<T>(op, scalars);
  }
}

TileKernel find(MicroOp op, DType operand, DType result, unsigned scalars) {
  if (arity(op) == 1 && scalars != 0) return nullptr;
  if (op == MicroOp::copy) return operand == result ? copy(operand) : nullptr;
  if (op == MicroOp::convert) return convert(operand, result);
  switch (operand) {
    case DType::boolean:
      return result == DType::boolean ? boolean(op, scalars) : nullptr;
    case DType::i32:
      return of_type<Int>(op, operand, result, scalars);
    case DType::f32:
      return of_type<float>(op, operand, result, scalars);
    case DType::f64:
      return of_type<double>(op, operand, result, scalars);
    default:
      return nullptr;
  }
}

}  // namespace

TileKernel find_tile_kernel(MicroOp op, DType operand, DType result, unsigned scalars) {
  return find(op, operand, result, scalars);
}

TileKernel find_product_kernel(DType dtype, int count, unsigned scalars) {
  return dtype == DType::f32   ? products<float>(count, scalars)
         : dtype == DType::f64 ? products<double>(count, scalars)
                               : nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(find_tile_kernel);
HWY_EXPORT(find_product_kernel);

TileKernel product_kernel(DType dtype, int products, unsigned scalars) {
  return HWY_DYNAMIC_DISPATCH(find_product_kernel)(dtype, products, scalars);
}

TileKernel tile_kernel(MicroOp op, DType operand, DType result, unsigned scalars) {
  return HWY_DYNAMIC_DISPATCH(find_tile_kernel)(op, operand, result, scalars);
}

}  // namespace braintrace
#endif
