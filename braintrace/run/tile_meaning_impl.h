// SPDX-License-Identifier: Apache-2.0
#pragma once
// What micro-ops do to one element, word for word the eval of their ops. Booleans are
// bytes that hold 0 or 1.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "braintrace/array/dtype.h"

namespace braintrace::meaning {

using Byte = std::uint8_t;

// Integers wrap around like numpy.
template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, std::int32_t>, std::uint32_t, T>;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return (a != a) | (a > b) ? a : b;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return (a != a) | (a < b) ? a : b;
  }
};

struct Neg {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, std::int32_t>) return Sub()(T(0), x);
    return -x;
  }
};
struct Abs {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, std::int32_t>) return x >= 0 ? x : Neg()(x);
    return std::abs(x);
  }
};
struct Sign {
  template <class T>
  T operator()(T x) const {
    const T up = x > T(0) ? T(1) : T(0), down = x < T(0) ? T(1) : T(0);
    return x != x ? x : up - down;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};
struct Floor {
  template <class T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

struct Equal {
  template <class T>
  Byte operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  Byte operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  Byte operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  Byte operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  Byte operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  Byte operator()(T a, T b) const {
    return a >= b;
  }
};
struct Not {
  Byte operator()(Byte x) const { return x ^ 1; }
};
struct And {
  Byte operator()(Byte a, Byte b) const { return a & b; }
};
struct Or {
  Byte operator()(Byte a, Byte b) const { return a | b; }
};
struct Xor {
  Byte operator()(Byte a, Byte b) const { return a ^ b; }
};

// Array::astype. Towards i32: truncates and saturates, NaN gives 0.
template <class R>
struct Convert {
  template <class T>
  R operator()(T x) const {
    if constexpr (std::is_same_v<R, std::int32_t> && std::is_floating_point_v<T>) {
      const double v = x == x ? static_cast<double>(x) : 0.0;
      const double low = v > -2147483648.0 ? v : -2147483648.0;
      return static_cast<std::int32_t>(low < 2147483647.0 ? low : 2147483647.0);
    } else {
      return static_cast<R>(x);
    }
  }
};
template <>
struct Convert<Byte> {
  template <class T>
  Byte operator()(T x) const {
    return x != T(0);
  }
};

}  // namespace braintrace::meaning
