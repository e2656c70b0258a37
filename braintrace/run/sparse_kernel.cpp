// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/sparse_kernel.h"

#include <algorithm>
#include <numeric>

#include "braintrace/base/error.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

constexpr std::int64_t kLimit = INT32_MAX;

// y[col] += v * w over connections that leave one input.
template <class T>
void push(T v, const T* w, const std::int32_t* col, std::int32_t n, T* y) {
  for (std::int32_t p = 0; p < n; ++p) y[col[p]] += v * w[p];
}

template <class T>
void push_ordered(T v, const T* w, const std::int32_t* order, const std::int32_t* col,
                  std::int32_t n, T* y) {
  for (std::int32_t p = 0; p < n; ++p) y[col[p]] += v * w[order[p]];
}

}  // namespace

SparseKernel::SparseKernel(DType dtype, std::int64_t lead, std::int64_t n_in,
                           std::int64_t n_out, const Ints& rows, const Ints& cols)
    : dtype_(dtype), lead_(lead), n_in_(n_in), n_out_(n_out) {
  BT_INVARIANT(is_float(dtype) && rows.size() == cols.size());
  BT_INVARIANT(n_in < kLimit && n_out < kLimit &&
               static_cast<std::int64_t>(rows.size()) < kLimit);
  start_.assign(static_cast<std::size_t>(n_in) + 1, 0);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    BT_INVARIANT(rows[p] >= 0 && rows[p] < n_in && cols[p] >= 0 && cols[p] < n_out);
    ++start_[static_cast<std::size_t>(rows[p]) + 1];
  }
  std::partial_sum(start_.begin(), start_.end(), start_.begin());
  col_.resize(rows.size());
  if (std::is_sorted(rows.begin(), rows.end())) {
    for (std::size_t p = 0; p < rows.size(); ++p)
      col_[p] = static_cast<std::int32_t>(cols[p]);
    return;
  }
  order_.resize(rows.size());
  std::vector<std::int32_t> next(start_.begin(), start_.end() - 1);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(rows[p])]++);
    order_[at] = static_cast<std::int32_t>(p);
    col_[at] = static_cast<std::int32_t>(cols[p]);
  }
}

template <class T>
void SparseKernel::run_as(const T* x, const T* w, const T* bias, T* y,
                          ThreadPool& pool) const {
  const double work = static_cast<double>(lead_) * static_cast<double>(col_.size());
  pool.for_tiles_if(work > kSharedWork, lead_, [&](std::int64_t l, int) {
    T* to = y + l * n_out_;
    if (bias != nullptr)
      std::copy_n(bias, n_out_, to);
    else
      std::fill_n(to, n_out_, T(0));
    for (std::int64_t i = 0; i < n_in_; ++i) {
      const T v = x[l * n_in_ + i];
      if (v == T(0)) continue;
      const std::int32_t first = start_[static_cast<std::size_t>(i)];
      const std::int32_t n = start_[static_cast<std::size_t>(i) + 1] - first;
      if (order_.empty())
        push(v, w + first, col_.data() + first, n, to);
      else
        push_ordered(v, w, order_.data() + first, col_.data() + first, n, to);
    }
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

}  // namespace braintrace
