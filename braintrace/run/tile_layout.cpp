// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "braintrace/base/divide.h"
#include "braintrace/base/error.h"
#include "braintrace/run/tile_layout_impl.h"

namespace braintrace {
namespace {

// Rows at least this long are cut by themselves; with an operand that is one number per
// row, which would have to be spread over the row, already shorter ones, most of all
// where only one kernel is called per row.
constexpr std::int64_t kLongRow = 192, kLongRowOfNumber = 24, kLongRowOfKernel = 4;

// The axis joins the one before it when every operand walks over both evenly.
bool joins(const TileLayout& t, const std::vector<Ints>& strides, std::size_t axis,
           std::int64_t dim) {
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (t.strides[i].back() != strides[i][axis] * dim) return false;
  return true;
}

TileLayout merged(const Shape& loop, const std::vector<Ints>& strides) {
  TileLayout t;
  t.strides.resize(strides.size());
  t.size = num_elements(loop);
  for (std::size_t a = 0; a < loop.size(); ++a) {
    if (loop[a] == 1) continue;
    if (!t.shape.empty() && joins(t, strides, a, loop[a])) {
      t.shape.back() *= loop[a];
      for (std::size_t i = 0; i < strides.size(); ++i)
        t.strides[i].back() = strides[i][a];
      continue;
    }
    t.shape.push_back(loop[a]);
    for (std::size_t i = 0; i < strides.size(); ++i)
      t.strides[i].push_back(strides[i][a]);
  }
  return t;
}

// Two numbers per position, of which one is wanted: vectors are read and sorted.
template <bool out>
void copy_pairs(std::byte* strided, std::byte* packed, std::int64_t n) {
  auto* far = reinterpret_cast<std::uint32_t*>(strided);
  auto* near = reinterpret_cast<std::uint32_t*>(packed);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (out)
      far[2 * i] = near[i];
    else
      near[i] = far[2 * i];
  }
}

template <std::size_t size, bool out>
void copy_strided(std::byte* strided, std::int64_t stride, std::byte* packed,
                  std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::byte* far = strided + i * stride * static_cast<std::int64_t>(size);
    if constexpr (out)
      std::memcpy(far, packed + static_cast<std::size_t>(i) * size, size);
    else
      std::memcpy(packed + static_cast<std::size_t>(i) * size, far, size);
  }
}

template <bool out>
void copy_row(std::byte* strided, std::int64_t stride, std::size_t element,
              std::byte* packed, std::int64_t n) {
  if (stride == 1) {
    const std::size_t bytes = static_cast<std::size_t>(n) * element;
    std::memcpy(out ? strided : packed, out ? packed : strided, bytes);
    return;
  }
  if (!out && stride == 0)
    return spread_number(strided, packed, static_cast<std::size_t>(n), element);
  if (element == 4 && stride == 2) return copy_pairs<out>(strided, packed, n);
  if (element == 4) return copy_strided<4, out>(strided, stride, packed, n);
  if (element == 8) return copy_strided<8, out>(strided, stride, packed, n);
  if (element == 2) return copy_strided<2, out>(strided, stride, packed, n);
  copy_strided<1, out>(strided, stride, packed, n);
}

// Where an operand's rows begin, one after the other, without divisions.
class RowWalk {
 public:
  RowWalk(const TileLayout& t, const Ints& strides, std::int64_t row)
      : t_(t), strides_(strides), outer_(t.shape.empty() ? 0 : t.shape.size() - 1) {
    BT_INVARIANT(outer_ <= kMaxAxes);
    for (std::size_t a = outer_; a-- > 0; row /= t.shape[a]) {
      index_[a] = row % t.shape[a];
      offset += index_[a] * strides[a];
    }
  }
  void next() {
    for (std::size_t a = outer_; a-- > 0;) {
      offset += strides_[a];
      if (++index_[a] < t_.shape[a]) return;
      offset -= index_[a] * strides_[a];
      index_[a] = 0;
    }
  }
  // Rows from here on, of which each begins `stride()` elements behind the one before.
  std::int64_t along() const {
    return outer_ == 0 ? 1 : t_.shape[outer_ - 1] - index_[outer_ - 1];
  }
  std::int64_t stride() const { return outer_ == 0 ? 0 : strides_[outer_ - 1]; }
  void skip(std::int64_t rows) {  // fewer than along()
    if (outer_ == 0) return;
    offset += rows * strides_[outer_ - 1];
    index_[outer_ - 1] += rows;
  }
  std::int64_t offset = 0;  // elements

 private:
  static constexpr std::size_t kMaxAxes = 32;
  const TileLayout& t_;
  const Ints& strides_;
  std::size_t outer_;
  std::int64_t index_[kMaxAxes];
};

// Whole rows whose elements lie `step` apart. False: one by one.
bool gather_rows(std::size_t element, const PackedRows& p, std::int64_t step,
                 const std::byte* from, std::byte* to) {
  if (step == 0) {
    spread_rows(element, p, from, to);
  } else if (step == 1) {
    pack_rows(element, p, from, to);
  } else if (p.stride == 1) {
    turn_matrix(element, {p.rows, p.columns, step, p.columns}, from, to);
  } else {
    return false;
  }
  return true;
}

// Pieces of rows, one after the other.
template <bool out>
void copy_run(const TileLayout& t, const Ints& strides, TileLayout::Run run,
              std::size_t element, std::byte* far, std::byte* packed) {
  const std::int64_t step = strides.empty() ? 0 : strides.back();
  const auto bytes = static_cast<std::int64_t>(element);
  std::int64_t at = run.start % t.row;  // of the first row
  for (RowWalk rows(t, strides, run.start / t.row); run.size > 0; rows.next(), at = 0) {
    const std::int64_t whole = std::min(rows.along(), run.size / t.row);
    if (!out && at == 0 && whole > 1 && element >= 4 &&
        gather_rows(element, {whole, t.row, rows.stride()}, step,
                    far + rows.offset * bytes, packed)) {
      packed += whole * t.row * bytes;
      run.size -= whole * t.row;
      rows.skip(whole - 1);
      continue;
    }
    const std::int64_t n = std::min(run.size, t.row - at);
    copy_row<out>(far + (rows.offset + at * step) * bytes, step, element, packed, n);
    packed += n * bytes;
    run.size -= n;
  }
}

// How many positions, innermost ones, an operand walks through without a jump, and how
// many find it unchanged.
std::int64_t unbroken(const TileLayout& t, const Ints& strides) {
  std::int64_t n = 1;
  for (std::size_t a = t.shape.size(); a-- > 0 && strides[a] == n;) n *= t.shape[a];
  return n;
}
std::int64_t unchanged(const TileLayout& t, const Ints& strides) {
  std::int64_t n = 1;
  for (std::size_t a = t.shape.size(); a-- > 0 && strides[a] == 0;) n *= t.shape[a];
  return n;
}

// After how many positions an operand begins again with its first element.
std::int64_t period(const TileLayout& t, const Ints& strides) {
  std::int64_t n = t.size;
  for (std::size_t a = 0; a < t.shape.size() && strides[a] == 0; ++a) n /= t.shape[a];
  return n;
}

// Can an operand be reached without gathering it for every block of so many rows?
bool fits_rows(const TileLayout& t, const Ints& strides, std::int64_t rows) {
  const std::int64_t n = std::max(unbroken(t, strides), unchanged(t, strides));
  return n == t.size || (n >= t.row && n / t.row % rows == 0) ||
         rows * t.row % period(t, strides) == 0;
}

// Is an operand one number per row, which blocks of so many rows would have to spread?
bool has_number_per_row(const TileLayout& t, std::int64_t rows) {
  return std::any_of(t.strides.begin(), t.strides.end(), [&](const Ints& s) {
    return !s.empty() && s.back() == 0 && unchanged(t, s) < t.size &&
           (rows == 1 || !fits_rows(t, s, rows));
  });
}

// At most so many, but as many as fit most operands, where such a number is not much
// less.
std::int64_t rows_per_block(const TileLayout& t, std::int64_t most) {
  std::int64_t best = most;
  std::ptrdiff_t most_fitting = -1;
  for (std::int64_t rows = most; 4 * rows > 3 * most; --rows) {
    const auto fitting =
        std::count_if(t.strides.begin(), t.strides.end(),
                      [&](const Ints& s) { return fits_rows(t, s, rows); });
    if (fitting > most_fitting) {
      most_fitting = fitting;
      best = rows;
    }
  }
  return best;
}

}  // namespace

std::int64_t TileLayout::num_blocks() const {
  if (size == 0) return 0;
  return inside_rows ? size / row * blocks_per_row() : divided_up(size, block);
}

TileLayout::Run TileLayout::run(std::int64_t index) const {
  if (!inside_rows) return {index * block, std::min(block, size - index * block)};
  const std::int64_t per_row = blocks_per_row();
  const std::int64_t at = index % per_row * block;
  return {index / per_row * row + at, std::min(block, row - at)};
}

TileLayout tile_layout(const Shape& loop, const std::vector<Ints>& strides,
                       std::int64_t block, Rows how) {
  TileLayout t = merged(loop, strides);
  if (!t.shape.empty()) t.row = t.shape.back();
  if (t.size == 0) return t;
  const std::int64_t of_number = how == Rows::together ? kLongRow
                                 : how == Rows::apart  ? kLongRowOfNumber
                                                       : kLongRowOfKernel;
  const std::int64_t rows = rows_per_block(t, std::max<std::int64_t>(1, block / t.row));
  const std::int64_t long_row = has_number_per_row(t, rows) ? of_number : kLongRow;
  t.inside_rows = t.shape.size() <= 1 || t.row >= std::min(long_row, block);
  if (t.inside_rows) {
    // Even blocks of whole vectors.
    t.block = divided_up(divided_up(t.row, divided_up(t.row, block)), 16) * 16;
  } else {
    t.block = rows * t.row;
  }
  return t;
}

Access access_of(const TileLayout& t, std::size_t operand) {
  const Ints& s = t.strides[operand];
  const bool constant = std::all_of(s.begin(), s.end(), [](auto v) { return v == 0; });
  if (constant) return Access::scalar;
  if (t.inside_rows) {
    if (s.back() == 0) return Access::scalar;
    return s.back() == 1 ? Access::direct : Access::strided;
  }
  const std::int64_t n = unbroken(t, s);
  if (n == t.size || n % t.block == 0) return Access::direct;
  if (unchanged(t, s) % t.block == 0) return Access::scalar;
  return t.block % period(t, s) == 0 ? Access::fixed : Access::strided;
}

std::int64_t offset_of(const TileLayout& t, const Ints& strides, std::int64_t at) {
  std::int64_t offset = 0;
  for (std::size_t a = t.shape.size(); a-- > 0;) {
    offset += at % t.shape[a] * strides[a];
    at /= t.shape[a];
  }
  return offset;
}

void spread_number(const std::byte* number, std::byte* packed, std::size_t n,
                   std::size_t element) {
  const auto spread = [&]<class T>(T value) {
    std::memcpy(&value, number, sizeof(T));
    std::fill_n(reinterpret_cast<T*>(packed), n, value);
  };
  if (element == 4) return spread(std::uint32_t{});
  if (element == 8) return spread(std::uint64_t{});
  if (element == 2) return spread(std::uint16_t{});
  spread(std::uint8_t{});
}

void gather_run(const TileLayout& t, const Ints& strides, TileLayout::Run run,
                std::size_t element, const std::byte* from, std::byte* packed) {
  copy_run<false>(t, strides, run, element, const_cast<std::byte*>(from), packed);
}

void scatter_run(const TileLayout& t, const Ints& strides, TileLayout::Run run,
                 std::size_t element, const std::byte* packed, std::byte* to) {
  copy_run<true>(t, strides, run, element, to, const_cast<std::byte*>(packed));
}

}  // namespace braintrace
