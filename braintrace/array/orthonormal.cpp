// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set. Sums are added in eight lanes whatever the vectors
// hold, and no operation is fused, so that all of them give the same bits.
#include "braintrace/array/orthonormal.h"

#include <algorithm>
#include <cmath>

#include "braintrace/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/array/orthonormal.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;
constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kVector = hn::MaxLanes(D()), kVectors = kLanes / kVector;
// Columns that are cleaned together against as many others: both stay in the cache.
constexpr std::int64_t kPanel = 16;
// A column that lost more of its length than this is cleaned again: what remained of the
// others has grown beside it.
constexpr double kMostLost = 0.9;

struct Columns {
  double* first;
  std::int64_t rows;
  double* at(std::int64_t c) const { return first + c * rows; }
};

double total(const V* sums) {
  double lanes[kLanes];
  for (int g = 0; g < kVectors; ++g) hn::StoreU(sums[g], D(), lanes + g * kVector);
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// Overlaps of P columns with Q others, P x Q.
template <int P, int Q>
void overlaps(const double* p, const double* q, std::int64_t rows, double* out) {
  V sums[P][Q][kVectors];
  for (auto& a : sums)
    for (auto& b : a)
      for (V& v : b) v = hn::Zero(D());
  std::int64_t i = 0;
  for (; i + kLanes <= rows; i += kLanes)
    for (int g = 0; g < kVectors; ++g) {
      V own[P];
      for (int a = 0; a < P; ++a) own[a] = hn::LoadU(D(), p + a * rows + i + g * kVector);
      for (int b = 0; b < Q; ++b) {
        const V other = hn::LoadU(D(), q + b * rows + i + g * kVector);
        for (int a = 0; a < P; ++a)
          sums[a][b][g] = hn::Add(sums[a][b][g], hn::Mul(own[a], other));
      }
    }
  for (int a = 0; a < P; ++a)
    for (int b = 0; b < Q; ++b) {
      double sum = total(sums[a][b]);
      for (std::int64_t r = i; r < rows; ++r) sum += p[a * rows + r] * q[b * rows + r];
      out[a * Q + b] = sum;
    }
}

// p -= q s
template <int P, int Q>
void subtract(double* p, const double* q, std::int64_t rows, const double* s) {
  std::int64_t i = 0;
  for (; i + kVector <= rows; i += kVector) {
    V own[P];
    for (int a = 0; a < P; ++a) own[a] = hn::LoadU(D(), p + a * rows + i);
    for (int b = 0; b < Q; ++b) {
      const V other = hn::LoadU(D(), q + b * rows + i);
      for (int a = 0; a < P; ++a)
        own[a] = hn::Sub(own[a], hn::Mul(hn::Set(D(), s[a * Q + b]), other));
    }
    for (int a = 0; a < P; ++a) hn::StoreU(own[a], D(), p + a * rows + i);
  }
  for (; i < rows; ++i)
    for (int a = 0; a < P; ++a)
      for (int b = 0; b < Q; ++b) p[a * rows + i] -= s[a * Q + b] * q[b * rows + i];
}

template <int P, int Q>
void clean(double* p, const double* q, std::int64_t rows) {
  double s[P * Q];
  overlaps<P, Q>(p, q, rows, s);
  subtract<P, Q>(p, q, rows, s);
}

// Columns [from, to) lose what they share with those in front of `until`.
void clean(const Columns& m, std::int64_t from, std::int64_t to, std::int64_t until) {
  constexpr int kAtOnce = 2, kOthers = 4;
  std::int64_t q = 0;
  for (; q + kPanel <= until; q += kPanel) {
    std::int64_t p = from;
    for (; p + kAtOnce <= to; p += kAtOnce)
      for (std::int64_t b = 0; b < kPanel; b += kOthers)
        clean<kAtOnce, kOthers>(m.at(p), m.at(q + b), m.rows);
    for (; p < to; ++p)
      for (std::int64_t b = 0; b < kPanel; b += kOthers)
        clean<1, kOthers>(m.at(p), m.at(q + b), m.rows);
  }
  for (; q < until; ++q)
    for (std::int64_t p = from; p < to; ++p) clean<1, 1>(m.at(p), m.at(q), m.rows);
}

double length(const Columns& m, std::int64_t c) {
  double square;
  overlaps<1, 1>(m.at(c), m.at(c), m.rows, &square);
  return std::sqrt(square);
}

}  // namespace

void orthonormal_columns(double* first, std::int64_t rows, std::int64_t count) {
  const Columns m{first, rows};
  double before[kPanel];
  for (std::int64_t from = 0; from < count; from += kPanel) {
    const std::int64_t to = std::min(count, from + kPanel);
    for (std::int64_t c = from; c < to; ++c) before[c - from] = length(m, c);
    clean(m, from, to, from);
    for (std::int64_t c = from; c < to; ++c) {
      for (std::int64_t q = from; q < c; ++q) clean<1, 1>(m.at(c), m.at(q), rows);
      double left = length(m, c);
      if (left < (1 - kMostLost) * before[c - from]) {
        clean(m, c, c + 1, c);
        left = length(m, c);
      }
      for (std::int64_t r = 0; r < rows; ++r) m.at(c)[r] /= left;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(orthonormal_columns);

void orthonormalize(std::span<double> columns, std::int64_t rows) {
  if (rows == 0) return;
  const std::int64_t count = std::ssize(columns) / rows;
  BT_INVARIANT(count <= rows && count * rows == std::ssize(columns));
  HWY_DYNAMIC_DISPATCH(orthonormal_columns)(columns.data(), rows, count);
}

}  // namespace braintrace
#endif
