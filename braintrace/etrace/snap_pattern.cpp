// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/snap_pattern.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace {
namespace {

using Matrix = std::vector<bool>;

Matrix boolean_product(const Matrix& a, const Matrix& b, std::size_t d) {
  Matrix c(d * d, false);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t k = 0; k < d; ++k) {
      if (!a[i * d + k]) continue;
      for (std::size_t j = 0; j < d; ++j)
        if (b[k * d + j]) c[i * d + j] = true;
    }
  return c;
}

Matrix closed(const Matrix& a, std::size_t d, std::int64_t n) {
  Matrix sum(d * d, false), power(d * d, false);
  for (std::size_t i = 0; i < d; ++i) sum[i * d + i] = power[i * d + i] = true;
  for (std::int64_t k = 1; k < n; ++k) {
    power = boolean_product(power, a, d);
    Matrix next = sum;
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = next[i] || power[i];
    if (next == sum && power == sum) break;
    sum = std::move(next);
  }
  return sum;
}

// Positions along one axis that q influences: rows p with a[p, q].
std::vector<std::int64_t> influenced(const Matrix& a, std::int64_t d, std::int64_t q) {
  std::vector<std::int64_t> out;
  for (std::int64_t p = 0; p < d; ++p)
    if (a[static_cast<std::size_t>(p * d + q)]) out.push_back(p);
  return out;
}

// Greedy, in ascending order; a colour is taken when no row reads both.
std::vector<std::int64_t> axis_colours(const Matrix& a, std::int64_t d) {
  std::vector<std::int64_t> colour;
  std::vector<std::vector<bool>> read_by;  // per colour: rows that read one of it
  for (std::int64_t q = 0; q < d; ++q) {
    const std::vector<std::int64_t> rows = influenced(a, d, q);
    auto is_free = [&](const std::vector<bool>& taken) {
      return std::none_of(rows.begin(), rows.end(), [&](std::int64_t p) {
        return taken[static_cast<std::size_t>(p)];
      });
    };
    auto it = std::find_if(read_by.begin(), read_by.end(), is_free);
    if (it == read_by.end())
      it = read_by.insert(read_by.end(),
                          std::vector<bool>(static_cast<std::size_t>(d), false));
    for (std::int64_t p : rows) (*it)[static_cast<std::size_t>(p)] = true;
    colour.push_back(it - read_by.begin());
  }
  return colour;
}

// Cartesian product over the axes, as flat row-major positions.
std::vector<std::int64_t> influenced_flat(const AxisAdjacency& a, const Shape& varshape,
                                          std::int64_t position) {
  const Ints strides = row_major_strides(varshape);
  std::vector<std::int64_t> flat = {0};
  for (std::size_t k = 0; k < varshape.size(); ++k) {
    const std::int64_t q = position / strides[k] % varshape[k];
    std::vector<std::int64_t> next;
    for (std::int64_t base : flat)
      for (std::int64_t p : influenced(a.axes[k], varshape[k], q))
        next.push_back(base + p * strides[k]);
    flat = std::move(next);
  }
  return flat;
}

// K is the product of the per-axis maxima, so that rows of every axis fit.
std::int64_t row_length(const AxisAdjacency& a, const Shape& varshape) {
  std::int64_t length = 1;
  for (std::size_t k = 0; k < varshape.size(); ++k) {
    std::size_t most = 0;
    for (std::int64_t q = 0; q < varshape[k]; ++q)
      most = std::max(most, influenced(a.axes[k], varshape[k], q).size());
    length *= static_cast<std::int64_t>(most);
  }
  return length;
}

}  // namespace

std::int64_t SnapPattern::num_neighbour() const {
  return neighbours.empty() ? 1 : static_cast<std::int64_t>(neighbours.front().size());
}

bool SnapPattern::is_saturated() const {
  if (num_neighbour() != num_position()) return false;
  return std::all_of(valid.begin(), valid.end(), [](const std::vector<bool>& row) {
    return std::all_of(row.begin(), row.end(), [](bool v) { return v; });
  });
}

AxisAdjacency close_adjacency(const AxisAdjacency& a, const Shape& varshape,
                              std::int64_t n) {
  BT_REQUIRE(n >= 1, fmt::format("close_adjacency: n must be >= 1, got {}", n));
  AxisAdjacency out = a;
  for (std::size_t k = 0; k < varshape.size(); ++k)
    out.axes[k] = closed(a.axes[k], static_cast<std::size_t>(varshape[k]), n);
  return out;
}

// Colours of a product of patterns are products of colours.
ColumnColours column_colours(const AxisAdjacency& one_step, const Shape& varshape) {
  ColumnColours c{.count = 1, .of = {0}};
  for (std::size_t k = 0; k < varshape.size(); ++k) {
    const std::vector<std::int64_t> axis = axis_colours(one_step.axes[k], varshape[k]);
    const std::int64_t n =
        axis.empty() ? 1 : 1 + *std::max_element(axis.begin(), axis.end());
    std::vector<std::int64_t> next;
    for (std::int64_t before : c.of)
      for (std::int64_t own : axis) next.push_back(before * n + own);
    c.of = std::move(next);
    c.count *= n;
  }
  return c;
}

bool may_read(const AxisAdjacency& a, const Shape& varshape, std::int64_t p,
              std::int64_t q) {
  const Ints strides = row_major_strides(varshape);
  for (std::size_t k = 0; k < varshape.size(); ++k) {
    const std::int64_t d = varshape[k];
    const std::int64_t to = p / strides[k] % d, from = q / strides[k] % d;
    if (!a.axes[k][static_cast<std::size_t>(to * d + from)]) return false;
  }
  return true;
}

SnapPattern snap_pattern(const AxisAdjacency& one_step, const Shape& varshape,
                         std::int64_t n) {
  SnapPattern s{
      .n = n, .varshape = varshape, .adjacency = close_adjacency(one_step, varshape, n)};
  s.conservative = one_step.conservative;
  s.reason = one_step.reason;
  const auto length = static_cast<std::size_t>(row_length(s.adjacency, varshape));
  for (std::int64_t p = 0; p < num_elements(varshape); ++p) {
    std::vector<std::int64_t> row = {p};
    for (std::int64_t q : influenced_flat(s.adjacency, varshape, p))
      if (q != p) row.push_back(q);
    std::vector<bool> valid(row.size(), true);
    row.resize(length, p);
    valid.resize(length, false);
    s.neighbours.push_back(std::move(row));
    s.valid.push_back(std::move(valid));
  }
  return s;
}

}  // namespace braintrace
