// SPDX-License-Identifier: Apache-2.0
// The usual sparse formats as lists of connections, in the order of their stored values.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

void check_sizes(std::string_view who, std::int64_t in, std::int64_t out) {
  BT_REQUIRE(in >= 0 && out >= 0,
             fmt::format("{}: sizes must not be negative, got {} and {}", who, in, out));
  BT_REQUIRE(
      in < INT32_MAX && out < INT32_MAX,
      fmt::format("{}: sizes must be below 2^31 - 1, got {} and {}", who, in, out));
}

// Entries p of `s` by row: order[start[i] .. start[i + 1]), or p itself when sorted.
struct ByRow {
  std::vector<std::int32_t> start, order;
};
ByRow by_row(const SparseStructure& s) {
  ByRow r{std::vector<std::int32_t>(static_cast<std::size_t>(s.in) + 1, 0), {}};
  for (std::int32_t i : s.rows) ++r.start[static_cast<std::size_t>(i) + 1];
  std::partial_sum(r.start.begin(), r.start.end(), r.start.begin());
  if (s.rows.is_sorted()) return r;
  r.order.resize(s.rows.size());
  std::vector<std::int32_t> next(r.start.begin(), r.start.end() - 1);
  for (std::size_t p = 0; p < s.rows.size(); ++p)
    r.order[static_cast<std::size_t>(next[static_cast<std::size_t>(s.rows[p])]++)] =
        static_cast<std::int32_t>(p);
  return r;
}

void check_distinct(std::string_view who, const SparseStructure& s) {
  const ByRow r = by_row(s);
  std::vector<std::int32_t> last(static_cast<std::size_t>(s.out), -1);  // row met
  for (std::int32_t i = 0; i < s.in; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (std::int32_t k = r.start[row]; k < r.start[row + 1]; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const std::size_t p = r.order.empty() ? at : static_cast<std::size_t>(r.order[at]);
      std::int32_t& met = last[static_cast<std::size_t>(s.cols[p])];
      BT_REQUIRE(met != i, fmt::format("{}: connection ({}, {}) is stored twice", who, i,
                                       s.cols[p]));
      met = i;
    }
  }
}

void check_structure(std::string_view who, const SparseStructure& s) {
  for (std::size_t p = 0; p < s.rows.size(); ++p) {
    BT_REQUIRE(s.rows[p] >= 0 && s.rows[p] < s.in,
               fmt::format("{}: row {} is outside 0 .. {}", who, s.rows[p], s.in - 1));
    BT_REQUIRE(
        s.cols[p] >= 0 && s.cols[p] < s.out,
        fmt::format("{}: column {} is outside 0 .. {}", who, s.cols[p], s.out - 1));
  }
  check_distinct(who, s);
}

// Major index of every stored value, out of compressed pointers.
IndexList expanded(std::string_view who, const IndexList& pointers, std::int64_t major,
                   std::size_t stored) {
  BT_REQUIRE(
      static_cast<std::int64_t>(pointers.size()) == major + 1,
      fmt::format("{}: needs {} pointers, got {}", who, major + 1, pointers.size()));
  const auto last = pointers[pointers.size() - 1];
  BT_REQUIRE(pointers[0] == 0 && last == static_cast<std::int64_t>(stored),
             fmt::format("{}: pointers must run from 0 to {}, got {} to {}", who, stored,
                         pointers[0], last));
  for (std::size_t i = 1; i < pointers.size(); ++i)
    BT_REQUIRE(pointers[i - 1] <= pointers[i],
               fmt::format("{}: pointers must not fall, got {} after {}", who,
                           pointers[i], pointers[i - 1]));
  Array index =
      Array::uninitialized(DType::i32, Shape{static_cast<std::int64_t>(stored)});
  auto* to = index.mutable_data<std::int32_t>();
  for (std::size_t i = 1; i < pointers.size(); ++i)
    std::fill(to + pointers[i - 1], to + pointers[i], static_cast<std::int32_t>(i - 1));
  return IndexList(index);
}

}  // namespace

SparseStructure csr_structure(std::int64_t in, std::int64_t out,
                              const IndexList& row_pointers, const IndexList& columns) {
  check_sizes("csr_structure", in, out);
  SparseStructure s{in, out, expanded("csr_structure", row_pointers, in, columns.size()),
                    columns};
  check_structure("csr_structure", s);
  return s;
}

SparseStructure csc_structure(std::int64_t in, std::int64_t out,
                              const IndexList& col_pointers, const IndexList& rows) {
  check_sizes("csc_structure", in, out);
  SparseStructure s{in, out, rows,
                    expanded("csc_structure", col_pointers, out, rows.size())};
  check_structure("csc_structure", s);
  return s;
}

SparseStructure coo_structure(std::int64_t in, std::int64_t out, const IndexList& rows,
                              const IndexList& cols) {
  check_sizes("coo_structure", in, out);
  BT_REQUIRE(
      rows.size() == cols.size(),
      fmt::format("coo_structure: {} rows but {} columns", rows.size(), cols.size()));
  SparseStructure s{in, out, rows, cols};
  check_structure("coo_structure", s);
  return s;
}

SparseStructure dense_structure(const Array& pattern) {
  BT_REQUIRE(pattern.rank() == 2,
             fmt::format("dense_structure: pattern must be [in, out], got {}",
                         to_string(pattern.shape())));
  const std::int64_t out = pattern.shape()[1];
  Ints rows, cols;
  for (std::int64_t i = 0, n = pattern.size(); i < n; ++i) {
    if (pattern.at(i) == 0) continue;
    rows.push_back(i / out);
    cols.push_back(i % out);
  }
  return {pattern.shape()[0], out, rows, cols};
}

SparseStructure transposed(const SparseStructure& s) {
  return {s.out, s.in, s.cols, s.rows};
}

SparseStructure random_structure(std::int64_t in, std::int64_t out,
                                 std::int64_t mean_degree, std::uint64_t seed) {
  check_sizes("random_structure", in, out);
  const std::int64_t least = mean_degree - mean_degree / 2;
  const std::int64_t most = mean_degree + mean_degree / 2;
  BT_REQUIRE(mean_degree >= 0 && most <= out,
             fmt::format("random_structure: 3/2 of the mean degree must lie in 0 .. {}, "
                         "the outputs; got a mean of {}",
                         out, mean_degree));
  const auto below = [](RngKey key, std::int64_t counter, std::int64_t limit) {
    const double u = uniform_at(key, static_cast<std::uint64_t>(counter));
    return static_cast<std::int64_t>(u * static_cast<double>(limit));
  };
  const RngKey degrees = rng_key(seed), draws = fold_in(degrees, 1);
  std::vector<std::int64_t> start(static_cast<std::size_t>(in) + 1, 0);
  for (std::int64_t i = 0; i < in; ++i)
    start[static_cast<std::size_t>(i) + 1] =
        start[static_cast<std::size_t>(i)] + least + below(degrees, i, most - least + 1);
  BT_REQUIRE(start.back() < INT32_MAX,
             fmt::format("random_structure: at most 2^31 - 2 connections, got {}",
                         start.back()));
  Array rows = Array::uninitialized(DType::i32, {start.back()}), cols = rows.contiguous();
  auto *row = rows.mutable_data<std::int32_t>(), *col = cols.mutable_data<std::int32_t>();
  std::vector<std::int32_t> last(static_cast<std::size_t>(out), -1);
  std::int64_t drawn = 0;
  for (std::int32_t i = 0; i < in; ++i) {
    const std::int64_t first = start[static_cast<std::size_t>(i)],
                       end = start[static_cast<std::size_t>(i) + 1];
    for (std::int64_t p = first; p < end;) {
      const std::int64_t o = below(draws, drawn++, out);
      if (std::exchange(last[static_cast<std::size_t>(o)], i) == i) continue;
      row[p] = i;
      col[p++] = static_cast<std::int32_t>(o);
    }
    std::sort(col + first, col + end);
  }
  return {in, out, IndexList(rows), IndexList(cols)};
}

}  // namespace braintrace
