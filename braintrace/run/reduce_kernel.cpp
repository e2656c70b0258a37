// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/reduce_kernel.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "braintrace/base/divide.h"
#include "braintrace/base/error.h"
#include "braintrace/run/sum_rows.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

constexpr std::int64_t kColumns = 256;  // outputs of one tile, reduced row by row
// Many rows of few columns are cut into this many pieces, whose results are joined in
// order: a thread reads rows it has written more often than columns.
constexpr std::int64_t kRowPieces = 8, kFewColumns = 512;
constexpr std::int64_t kRows = 64;  // outputs of one tile, reduced one by one
// One long row is cut into pieces of this many elements, whose sums are added in order.
constexpr std::int64_t kPiece = 32768, kMaxPieces = 256;

// ---- what is combined: the type it runs in, its start, one step ----
template <class T>
struct Sum {
  using Acc = std::conditional_t<std::is_same_v<T, std::int32_t>, std::uint32_t, double>;
  static constexpr bool has_lanes = true;
  static Acc first() { return 0; }
  static Acc join(Acc a, Acc v) { return a + v; }
};
template <class T>
struct Product {
  using Acc = std::conditional_t<std::is_same_v<T, std::int32_t>, std::uint32_t, double>;
  static constexpr bool has_lanes = true;
  static Acc first() { return 1; }
  static Acc join(Acc a, Acc v) { return a * v; }
};
template <class T>
T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::min();
}
template <class T>
T highest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}
template <class T>
struct Largest {
  using Acc = T;
  static constexpr bool has_lanes = false;
  static Acc first() { return lowest<T>(); }
  static Acc join(Acc a, Acc v) { return (v != v) | (v > a) ? v : a; }
};
template <class T>
struct Smallest {
  using Acc = T;
  static constexpr bool has_lanes = false;
  static Acc first() { return highest<T>(); }
  static Acc join(Acc a, Acc v) { return (v != v) | (v < a) ? v : a; }
};

// A run of elements. Lanes are joined pairwise, then the rest in order.
template <class T, class Op>
typename Op::Acc reduce_row(const T* x, std::int64_t n) {
  using Acc = typename Op::Acc;
  Acc acc = Op::first();
  std::int64_t i = 0;
  if constexpr (Op::has_lanes) {
    constexpr int kLanes = 16;
    Acc lane[kLanes];
    for (Acc& l : lane) l = Op::first();
    for (; i + kLanes <= n; i += kLanes)
      for (int l = 0; l < kLanes; ++l)
        lane[l] = Op::join(lane[l], static_cast<Acc>(x[i + l]));
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lane[l] = Op::join(lane[l], lane[l + half]);
    acc = lane[0];
  }
  for (; i < n; ++i) acc = Op::join(acc, static_cast<Acc>(x[i]));
  return acc;
}

}  // namespace

template <class T, class Op>
struct ReduceKernel::Runner {
  using Acc = typename Op::Acc;
  const ReduceKernel& r;
  const T* x;
  T* y;
  ThreadPool& pool;
  bool shared = 0.3 * static_cast<double>(r.inputs_) > kSharedWork;

  void run() const {
    if (r.inputs_ == 0) {
      std::fill_n(y, r.outputs_, static_cast<T>(Op::first()));
    } else if (r.outputs_ == 1 && r.reduced_.size() == 1) {
      one_row();
    } else if (r.reduced_.back().size > 1 || r.kept_.size() == 1) {
      rows();
    } else if (is_tall()) {
      tall_columns();
    } else {
      columns();
    }
  }

  void one_row() const {
    Acc parts[kMaxPieces] = {};
    const std::int64_t n = r.inputs_;
    const std::int64_t piece = std::max(kPiece, divided_up(n, kMaxPieces));
    const std::int64_t pieces = divided_up(n, piece);
    pool.for_tiles_if(shared, pieces, [&](std::int64_t i, int) {
      parts[i] = reduce_row<T, Op>(x + i * piece, std::min(piece, n - i * piece));
    });
    Acc acc = parts[0];
    for (std::int64_t i = 1; i < pieces; ++i) acc = Op::join(acc, parts[i]);
    *y = static_cast<T>(acc);
  }

  void rows() const {
    pool.for_tiles_if(shared, divided_up(r.outputs_, kRows), [&](std::int64_t t, int) {
      const std::int64_t end = std::min(r.outputs_, (t + 1) * kRows);
      for (std::int64_t o = t * kRows; o < end; ++o)
        y[o] = static_cast<T>(all_of(x + offset(o), 0));
    });
  }

  // The last kept axis is consecutive: outputs side by side.
  void columns() const {
    const std::int64_t n = r.kept_.back().size;
    const std::int64_t per_row = divided_up(n, kColumns);
    pool.for_tiles_if(shared, r.outputs_ / n * per_row, [&](std::int64_t t, int) {
      const std::int64_t column = t % per_row * kColumns;
      const std::int64_t first = t / per_row * n + column;
      const std::int64_t width = std::min(kColumns, n - column);
      Acc acc[kColumns];
      std::fill_n(acc, width, Op::first());
      join_rows(x + offset(first), 0, acc, width);
      for (std::int64_t j = 0; j < width; ++j) y[first + j] = static_cast<T>(acc[j]);
    });
  }

  bool is_tall() const {
    return shared && r.outputs_ <= kFewColumns && r.outputs_ == r.kept_.back().size &&
           r.reduced_.size() == 2;
  }

  // One matrix, reduced to its columns.
  void tall_columns() const {
    const std::int64_t n = r.outputs_, rows = r.reduced_[0].size;
    Acc parts[kRowPieces * kFewColumns];
    pool.for_tiles(kRowPieces, [&](std::int64_t p, int) {
      const std::int64_t from = rows * p / kRowPieces, to = rows * (p + 1) / kRowPieces;
      std::fill_n(parts + p * n, n, Op::first());
      join_rows(x + from * n, to - from, n, parts + p * n, n);
    });
    for (std::int64_t j = 0; j < n; ++j) {
      Acc acc = parts[j];
      for (std::int64_t p = 1; p < kRowPieces; ++p) acc = Op::join(acc, parts[p * n + j]);
      y[j] = static_cast<T>(acc);
    }
  }

  std::int64_t offset(std::int64_t output) const {
    std::int64_t at = 0;
    for (std::size_t a = r.kept_.size(); a-- > 0;) {
      at += output % r.kept_[a].size * r.kept_[a].stride;
      output /= r.kept_[a].size;
    }
    return at;
  }

  // Everything at the positions of the reduced axes from `axis` on.
  Acc all_of(const T* from, std::size_t axis) const {
    const Axis& a = r.reduced_[axis];
    if (axis + 1 == r.reduced_.size()) return reduce_row<T, Op>(from, a.size);
    Acc acc = Op::first();
    for (std::int64_t i = 0; i < a.size; ++i)
      acc = Op::join(acc, all_of(from + i * a.stride, axis + 1));
    return acc;
  }

  void join_rows(const T* from, std::size_t axis, Acc* acc, std::int64_t n) const {
    const Axis& a = r.reduced_[axis];
    // The last reduced axis has one element here.
    if (axis + 2 >= r.reduced_.size()) return join_rows(from, a.size, a.stride, acc, n);
    for (std::int64_t i = 0; i < a.size; ++i)
      join_rows(from + i * a.stride, axis + 1, acc, n);
  }

  static void join_rows(const T* from, std::int64_t rows, std::int64_t stride, Acc* acc,
                        std::int64_t n) {
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Op, Sum<float>>)
      return sum_rows(from, rows, stride, acc, n);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        acc[j] = Op::join(acc[j], static_cast<Acc>(from[i * stride + j]));
  }
};

ReduceKernel::ReduceKernel(ReduceKind kind, DType dtype, const Shape& shape,
                           const Ints& axes)
    : kind_(kind), dtype_(dtype), inputs_(num_elements(shape)) {
  BT_INVARIANT(dtype != DType::boolean && is_computable(dtype));
  Shape nest = {1};
  for (std::size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] == 1) continue;
    const bool reduced =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(a)) != axes.end();
    const bool last_is_reduced = nest.size() % 2 == 0;
    if (reduced == last_is_reduced)
      nest.back() *= shape[a];
    else
      nest.push_back(shape[a]);
  }
  if (nest.size() % 2 != 0) nest.push_back(1);
  const Ints strides = row_major_strides(nest);
  for (std::size_t a = 0; a < nest.size(); a += 2) {
    kept_.push_back({nest[a], strides[a]});
    reduced_.push_back({nest[a + 1], strides[a + 1]});
    outputs_ *= nest[a];
  }
}

void ReduceKernel::run(const void* x, void* y, ThreadPool& pool) const {
  visit_dtype(dtype_, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const T* from = static_cast<const T*>(x);
      T* to = static_cast<T*>(y);
      switch (kind_) {
        case ReduceKind::sum:
          return Runner<T, Sum<T>>{*this, from, to, pool}.run();
        case ReduceKind::prod:
          return Runner<T, Product<T>>{*this, from, to, pool}.run();
        case ReduceKind::max:
          return Runner<T, Largest<T>>{*this, from, to, pool}.run();
        case ReduceKind::min:
          return Runner<T, Smallest<T>>{*this, from, to, pool}.run();
      }
    }
  });
}

}  // namespace braintrace
