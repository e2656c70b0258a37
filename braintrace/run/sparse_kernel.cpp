// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/sparse_kernel.h"

#include <algorithm>
#include <numeric>

#include "braintrace/base/error.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

constexpr std::int64_t kLimit = INT32_MAX;
constexpr std::int64_t kBlock = 1024;  // outputs or rows per tile

bool inside(const IndexList& v, std::int64_t size) {
  return v.empty() || (v.smallest() >= 0 && v.largest() < size);
}

void check(DType dtype, const IndexList& rows, std::int64_t n_in, const IndexList& cols,
           std::int64_t n_out) {
  BT_INVARIANT(is_float(dtype) && rows.size() == cols.size());
  BT_INVARIANT(n_in < kLimit && n_out < kLimit &&
               static_cast<std::int64_t>(rows.size()) < kLimit);
  BT_INVARIANT(inside(rows, n_in) && inside(cols, n_out));
}

// Where the entries of each index begin, in a list sorted by it.
std::vector<std::int32_t> starts(const IndexList& index, std::int64_t size) {
  std::vector<std::int32_t> start(static_cast<std::size_t>(size) + 1, 0);
  for (std::int32_t i : index) ++start[static_cast<std::size_t>(i) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  return start;
}

std::int64_t blocks(std::int64_t n) { return (n + kBlock - 1) / kBlock; }

}  // namespace

SparseKernel::SparseKernel(DType dtype, std::int64_t lead, std::int64_t n_in,
                           std::int64_t n_out, const IndexList& rows,
                           const IndexList& cols)
    : dtype_(dtype), lead_(lead), n_in_(n_in), n_out_(n_out) {
  check(dtype, rows, n_in, cols, n_out);
  pulls_ = !rows.is_sorted() && cols.is_sorted();
  start_ = pulls_ ? starts(cols, n_out) : starts(rows, n_in);
  other_ = pulls_ ? rows : cols;
  if (pulls_ || rows.is_sorted()) return;
  order_.resize(rows.size());
  Array ordered =
      Array::uninitialized(DType::i32, Shape{static_cast<std::int64_t>(rows.size())});
  auto* col = ordered.mutable_data<std::int32_t>();
  std::vector<std::int32_t> next(start_.begin(), start_.end() - 1);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(rows[p])]++);
    order_[at] = static_cast<std::int32_t>(p);
    col[at] = cols[p];
  }
  other_ = IndexList(ordered);
}

// From every input that is not 0 to the outputs it reaches.
template <class T>
void SparseKernel::push(const T* x, const T* w, const T* bias, T* y) const {
  if (bias != nullptr)
    std::copy_n(bias, n_out_, y);
  else
    std::fill_n(y, n_out_, T(0));
  for (std::size_t i = 0; i + 1 < start_.size(); ++i) {
    const T v = x[i];
    if (v == T(0)) continue;
    const std::int32_t first = start_[i], n = start_[i + 1] - first;
    const std::int32_t* col = other_.begin() + first;
    if (order_.empty()) {
      for (std::int32_t p = 0; p < n; ++p) y[col[p]] += v * w[first + p];
      continue;
    }
    const std::int32_t* order = order_.data() + first;
    for (std::int32_t p = 0; p < n; ++p) y[col[p]] += v * w[order[p]];
  }
}

// One block of outputs, each from all inputs that reach it.
template <class T>
void SparseKernel::pull(const T* x, const T* w, const T* bias, T* y,
                        std::int64_t block) const {
  const std::int64_t last = std::min(n_out_, (block + 1) * kBlock);
  for (std::int64_t o = block * kBlock; o < last; ++o) {
    T sum = bias != nullptr ? bias[o] : T(0);
    const auto at = static_cast<std::size_t>(o);
    for (std::int32_t p = start_[at]; p < start_[at + 1]; ++p)
      sum += x[other_.begin()[p]] * w[p];
    y[o] = sum;
  }
}

template <class T>
void SparseKernel::run_as(const T* x, const T* w, const T* bias, T* y,
                          ThreadPool& pool) const {
  const double work = static_cast<double>(lead_) * static_cast<double>(other_.size());
  const std::int64_t parts = pulls_ ? blocks(n_out_) : 1;
  pool.for_tiles_if(work > kSharedWork, lead_ * parts, [&](std::int64_t tile, int) {
    const std::int64_t l = tile / parts;
    if (pulls_)
      pull(x + l * n_in_, w, bias, y + l * n_out_, tile % parts);
    else
      push(x + l * n_in_, w, bias, y + l * n_out_);
  });
}

void SparseKernel::run(const void* x, const void* w, const void* bias, void* y,
                       ThreadPool& pool) const {
  if (dtype_ == DType::f64)
    return run_as(static_cast<const double*>(x), static_cast<const double*>(w),
                  static_cast<const double*>(bias), static_cast<double*>(y), pool);
  run_as(static_cast<const float*>(x), static_cast<const float*>(w),
         static_cast<const float*>(bias), static_cast<float*>(y), pool);
}

SparseOuterKernel::SparseOuterKernel(DType dtype, std::int64_t lead, std::int64_t n_x,
                                     std::int64_t n_y, const IndexList& rows,
                                     const IndexList& cols)
    : dtype_(dtype), lead_(lead), n_x_(n_x), n_y_(n_y), rows_(rows), cols_(cols) {
  check(dtype, rows, n_x, cols, n_y);
  if (rows.is_sorted()) start_ = starts(rows, n_x);
}

template <class T>
void SparseOuterKernel::by_row(const T* x, const T* y, T* w, std::int64_t first,
                               std::int64_t last) const {
  for (std::int64_t i = first; i < last; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int32_t* col = cols_.begin() + start_[at];
    const std::int32_t n = start_[at + 1] - start_[at];
    T* to = w + start_[at];
    bool written = adds_;
    for (std::int64_t l = 0; l < lead_; ++l) {
      const T v = x[l * n_x_ + i];
      if (v == T(0)) continue;
      const T* from = y + l * n_y_;
      if (!written)
        for (std::int32_t p = 0; p < n; ++p) to[p] = v * from[col[p]];
      else
        for (std::int32_t p = 0; p < n; ++p) to[p] += v * from[col[p]];
      written = true;
    }
    if (!written) std::fill_n(to, n, T(0));
  }
}

template <class T>
void SparseOuterKernel::run_as(const T* x, const T* y, T* w, ThreadPool& pool) const {
  const auto stored = static_cast<std::int64_t>(rows_.size());
  const bool shared =
      static_cast<double>(lead_) * static_cast<double>(stored) > kSharedWork;
  if (!start_.empty()) {
    pool.for_tiles_if(shared, blocks(n_x_), [&](std::int64_t tile, int) {
      by_row(x, y, w, tile * kBlock, std::min(n_x_, (tile + 1) * kBlock));
    });
    return;
  }
  pool.for_tiles_if(shared, blocks(stored), [&](std::int64_t tile, int) {
    for (std::int64_t p = tile * kBlock; p < std::min(stored, (tile + 1) * kBlock); ++p) {
      T sum = adds_ ? w[p] : T(0);
      for (std::int64_t l = 0; l < lead_; ++l)
        sum += x[l * n_x_ + rows_.begin()[p]] * y[l * n_y_ + cols_.begin()[p]];
      w[p] = sum;
    }
  });
}

void SparseOuterKernel::run(const void* x, const void* y, void* w,
                            ThreadPool& pool) const {
  if (dtype_ == DType::f64)
    return run_as(static_cast<const double*>(x), static_cast<const double*>(y),
                  static_cast<double*>(w), pool);
  run_as(static_cast<const float*>(x), static_cast<const float*>(y),
         static_cast<float*>(w), pool);
}

}  // namespace braintrace
