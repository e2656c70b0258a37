// SPDX-License-Identifier: Apache-2.0
// The usual sparse formats as lists of connections, in the order of their stored values.
#include <set>

#include <fmt/format.h>

#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

void check_sizes(std::string_view who, std::int64_t in, std::int64_t out) {
  BT_REQUIRE(in >= 0 && out >= 0,
             fmt::format("{}: sizes must not be negative, got {} and {}", who, in, out));
}

void check_structure(std::string_view who, const SparseStructure& s) {
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::size_t p = 0; p < s.rows.size(); ++p) {
    BT_REQUIRE(s.rows[p] >= 0 && s.rows[p] < s.in,
               fmt::format("{}: row {} is outside 0 .. {}", who, s.rows[p], s.in - 1));
    BT_REQUIRE(
        s.cols[p] >= 0 && s.cols[p] < s.out,
        fmt::format("{}: column {} is outside 0 .. {}", who, s.cols[p], s.out - 1));
    BT_REQUIRE(seen.emplace(s.rows[p], s.cols[p]).second,
               fmt::format("{}: connection ({}, {}) is stored twice", who, s.rows[p],
                           s.cols[p]));
  }
}

// Major index of every stored value, out of compressed pointers.
Ints expanded(std::string_view who, const Ints& pointers, std::int64_t major,
              std::size_t stored) {
  BT_REQUIRE(
      static_cast<std::int64_t>(pointers.size()) == major + 1,
      fmt::format("{}: needs {} pointers, got {}", who, major + 1, pointers.size()));
  BT_REQUIRE(
      pointers.front() == 0 && pointers.back() == static_cast<std::int64_t>(stored),
      fmt::format("{}: pointers must run from 0 to {}, got {} to {}", who, stored,
                  pointers.front(), pointers.back()));
  for (std::size_t i = 1; i < pointers.size(); ++i)
    BT_REQUIRE(pointers[i - 1] <= pointers[i],
               fmt::format("{}: pointers must not fall, got {} after {}", who,
                           pointers[i], pointers[i - 1]));
  Ints index;
  for (std::size_t i = 1; i < pointers.size(); ++i)
    index.insert(index.end(), static_cast<std::size_t>(pointers[i] - pointers[i - 1]),
                 static_cast<std::int64_t>(i - 1));
  return index;
}

}  // namespace

SparseStructure csr_structure(std::int64_t in, std::int64_t out, const Ints& row_pointers,
                              const Ints& columns) {
  check_sizes("csr_structure", in, out);
  SparseStructure s{in, out, expanded("csr_structure", row_pointers, in, columns.size()),
                    columns};
  check_structure("csr_structure", s);
  return s;
}

SparseStructure csc_structure(std::int64_t in, std::int64_t out, const Ints& col_pointers,
                              const Ints& rows) {
  check_sizes("csc_structure", in, out);
  SparseStructure s{in, out, rows,
                    expanded("csc_structure", col_pointers, out, rows.size())};
  check_structure("csc_structure", s);
  return s;
}

SparseStructure coo_structure(std::int64_t in, std::int64_t out, const Ints& rows,
                              const Ints& cols) {
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
  SparseStructure s{pattern.shape()[0], pattern.shape()[1], {}, {}};
  for (std::int64_t i = 0, n = pattern.size(); i < n; ++i) {
    if (pattern.at(i) == 0) continue;
    s.rows.push_back(i / s.out);
    s.cols.push_back(i % s.out);
  }
  return s;
}

}  // namespace braintrace
