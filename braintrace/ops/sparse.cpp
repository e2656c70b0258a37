// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/sparse.h"

#include <fmt/format.h>

#include "braintrace/ops/etp.h"

namespace braintrace {
namespace {

void check_range(std::string_view who, std::string_view name, const IndexList& v,
                 std::int64_t size) {
  if (v.empty()) return;
  const std::int64_t found = v.smallest() < 0 ? v.smallest() : v.largest();
  BT_REQUIRE(found >= 0 && found < size,
             fmt::format("{}: {} holds {}, outside 0 .. {}", who, name, found, size - 1));
}

template <class T>
void run_sparse(const Kernel& k) {
  const SparseStructure s = sparse_structure(k.attrs);
  const T *x = k.in[0].data<T>(), *w = k.in[1].data<T>();
  const T* b = k.in.size() > 2 ? k.in[2].data<T>() : nullptr;
  T* y = k.out[0].mutable_data<T>();
  std::vector<double> acc(static_cast<std::size_t>(s.out));
  const std::int64_t lead = s.out == 0 ? 0 : k.out[0].size() / s.out;
  for (std::int64_t r = 0; r < lead; ++r) {
    for (std::size_t o = 0; o < acc.size(); ++o)
      acc[o] = b ? static_cast<double>(b[o]) : 0;
    for (std::size_t p = 0; p < s.rows.size(); ++p)
      acc[static_cast<std::size_t>(s.cols[p])] +=
          static_cast<double>(x[r * s.in + s.rows[p]]) * static_cast<double>(w[p]);
    for (std::size_t o = 0; o < acc.size(); ++o)
      y[r * s.out + static_cast<std::int64_t>(o)] = static_cast<T>(acc[o]);
  }
}

}  // namespace

std::vector<AttrSpec> sparse_attr_specs(std::vector<AttrSpec> more) {
  more.insert(more.end(), {{"cols", AttrKind::indices},
                           {"in", AttrKind::integer},
                           {"out", AttrKind::integer},
                           {"rows", AttrKind::indices}});
  return more;
}

Attrs sparse_attrs(const SparseStructure& s) {
  return {{"cols", s.cols}, {"in", s.in}, {"out", s.out}, {"rows", s.rows}};
}

SparseStructure sparse_structure(const Attrs& attrs) {
  return {attrs.integer("in"), attrs.integer("out"), attrs.indices("rows"),
          attrs.indices("cols")};
}

void check_sparse_attrs(std::string_view who, const Attrs& attrs) {
  const SparseStructure s = sparse_structure(attrs);
  check_shape(who, Shape{s.in, s.out});
  BT_REQUIRE(s.in <= INT32_MAX && s.out <= INT32_MAX,
             fmt::format("{}: at most 2^31 - 1 inputs and outputs, got {} and {}", who,
                         s.in, s.out));
  BT_REQUIRE(s.rows.size() == s.cols.size(),
             fmt::format("{}: {} rows but {} cols", who, s.rows.size(), s.cols.size()));
  check_range(who, "rows", s.rows, s.in);
  check_range(who, "cols", s.cols, s.out);
}

void check_last_axis(std::string_view who, std::string_view name, const Type& t,
                     std::int64_t size) {
  BT_REQUIRE(!t.shape.empty() && t.shape.back() == size,
             fmt::format("{}: {} must be [..., {}], got {}", who, name, size,
                         to_string(t.shape)));
}

void check_sparse_weight(std::string_view who, const Type& w, const Attrs& attrs) {
  const std::size_t stored = attrs.indices("rows").size();
  BT_REQUIRE(w.rank() == 1 && w.shape[0] == static_cast<std::int64_t>(stored),
             fmt::format("{}: weight must be [{}], one per connection, got {}", who,
                         stored, to_string(w.shape)));
}

Type sparse_product_type(std::string_view who, std::span<const Type> in,
                         const Attrs& attrs) {
  check_sparse_attrs(who, attrs);
  check_sparse_weight(who, in[1], attrs);
  check_last_axis(who, "x", in[0], attrs.integer("in"));
  Type y = in[0];
  y.shape.back() = attrs.integer("out");
  return y;
}

void eval_sparse_product(const Kernel& k) {
  if (k.out[0].dtype() == DType::f64) return run_sparse<double>(k);
  run_sparse<float>(k);
}

Lowering lower_sparse_product(const Signature& s) {
  return lowering::Sparse{s.attrs.indices("rows"), s.attrs.indices("cols")};
}

PositionMap sparse_product_positions(const Signature& s) {
  const std::int64_t last = s.in[0].rank() - 1;
  InputFlow x = identity_flow(last), w;
  x.axes.push_back({Flow::mixed, last});
  w.axes.assign(static_cast<std::size_t>(last), {Flow::fresh, -1});
  w.axes.push_back({Flow::mixed, 0});
  PositionMap map{{{x}, {w}}};
  if (s.in.size() > 2) map.flow.push_back({bias_flow(last + 1, 1)});
  return map;
}

Value at_rows(const Value& x, const SparseStructure& s) {
  return take(x, s.rows.array(), -1);
}

Value at_cols(const Value& y, const SparseStructure& s) {
  return take(y, s.cols.array(), -1);
}

Value gathered_product(const Value& x, const Value& w, const SparseStructure& s) {
  const Value product = at_rows(x, s) * w;
  Shape shape = product.shape();
  shape.back() = s.out;
  return scatter_add(zeros(shape, product.dtype()), s.cols.array(), product, -1);
}

}  // namespace braintrace
