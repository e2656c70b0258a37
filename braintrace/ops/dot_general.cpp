// SPDX-License-Identifier: Apache-2.0
// Sum of products over paired axes, with paired batch axes: y[batch, free lhs, free rhs].
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "braintrace/ops/axis.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/product.h"

namespace braintrace {
namespace {

DotDims dims_of(const Attrs& a) {
  return {a.ints("lhs_contract"), a.ints("rhs_contract"), a.ints("lhs_batch"),
          a.ints("rhs_batch")};
}

Attrs to_attrs(const DotDims& d) {
  return {{"lhs_batch", d.lhs_batch},
          {"lhs_contract", d.lhs_contract},
          {"rhs_batch", d.rhs_batch},
          {"rhs_contract", d.rhs_contract}};
}

Ints lhs_free(const DotDims& d, std::int64_t rank) {
  return other_axes(rank, joined({d.lhs_batch, d.lhs_contract}));
}
Ints rhs_free(const DotDims& d, std::int64_t rank) {
  return other_axes(rank, joined({d.rhs_batch, d.rhs_contract}));
}

void check_pairs(std::string_view kind, const Shape& lhs, const Ints& l, const Shape& rhs,
                 const Ints& r) {
  for (std::size_t i = 0; i < l.size(); ++i)
    BT_REQUIRE(dim(lhs, l[i]) == dim(rhs, r[i]),
               fmt::format("dot_general: {} axes {} of {} and {} of {} differ in size",
                           kind, l[i], to_string(lhs), r[i], to_string(rhs)));
}

std::vector<Type> infer_dot_general(std::span<const Type> in, const Attrs& attrs) {
  const DotDims d = dims_of(attrs);
  const Type &lhs = in[0], &rhs = in[1];
  BT_REQUIRE_KIND(
      lhs.dtype == rhs.dtype && is_computable(lhs.dtype) && lhs.dtype != DType::boolean,
      ErrorKind::type,
      fmt::format("dot_general: needs numbers of one type, got {} and {}", to_string(lhs),
                  to_string(rhs)));
  BT_REQUIRE(d.lhs_contract.size() == d.rhs_contract.size(),
             fmt::format("dot_general: contracted axes must pair up, got {} and {}",
                         to_string(d.lhs_contract), to_string(d.rhs_contract)));
  BT_REQUIRE(d.lhs_batch.size() == d.rhs_batch.size(),
             fmt::format("dot_general: batch axes must pair up, got {} and {}",
                         to_string(d.lhs_batch), to_string(d.rhs_batch)));
  check_distinct_axes("dot_general: lhs", joined({d.lhs_batch, d.lhs_contract}),
                      lhs.rank());
  check_distinct_axes("dot_general: rhs", joined({d.rhs_batch, d.rhs_contract}),
                      rhs.rank());
  check_pairs("contracted", lhs.shape, d.lhs_contract, rhs.shape, d.rhs_contract);
  check_pairs("batch", lhs.shape, d.lhs_batch, rhs.shape, d.rhs_batch);
  Shape out;
  for (std::int64_t a : d.lhs_batch) out.push_back(dim(lhs.shape, a));
  for (std::int64_t a : lhs_free(d, lhs.rank())) out.push_back(dim(lhs.shape, a));
  for (std::int64_t a : rhs_free(d, rhs.rank())) out.push_back(dim(rhs.shape, a));
  return {{lhs.dtype, out}};
}

std::int64_t product_of(const Shape& s, const Ints& axes) {
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= dim(s, a);
  return n;
}

// y[b, m, n] = sum_k lhs[b, m, k] rhs[b, n, k]
template <class T>
void multiply(const Array& lhs, const Array& rhs, Array& out, std::int64_t batch,
              std::int64_t m, std::int64_t n, std::int64_t inner) {
  const T* a = lhs.data<T>();
  const T* b = rhs.data<T>();
  T* y = out.mutable_data<T>();
  for (std::int64_t i = 0; i < batch * m; ++i) {
    const T* row = a + i * inner;
    const T* matrix = b + i / m * n * inner;
    for (std::int64_t j = 0; j < n; ++j) {
      Sum<T> sum = 0;
      for (std::int64_t q = 0; q < inner; ++q)
        sum += static_cast<Sum<T>>(row[q]) * static_cast<Sum<T>>(matrix[j * inner + q]);
      y[i * n + j] = Accumulator<T>::result(sum);
    }
  }
}

void eval_dot_general(const Kernel& k) {
  const DotDims d = dims_of(k.attrs);
  const Ints left = lhs_free(d, k.in[0].rank()), right = rhs_free(d, k.in[1].rank());
  const Array lhs =
      k.in[0].transposed(joined({d.lhs_batch, left, d.lhs_contract})).contiguous();
  const Array rhs =
      k.in[1].transposed(joined({d.rhs_batch, right, d.rhs_contract})).contiguous();
  const Shape &ls = k.in[0].shape(), &rs = k.in[1].shape();
  visit_dtype(k.out[0].dtype(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>)
      multiply<T>(lhs, rhs, k.out[0], product_of(ls, d.lhs_batch), product_of(ls, left),
                  product_of(rs, right), product_of(ls, d.lhs_contract));
  });
}

Lowering lower_dot_general(const Signature& s) {
  const DotDims d = dims_of(s.attrs);
  return lowering::Gemm{d.lhs_batch, d.rhs_batch, d.lhs_contract, d.rhs_contract};
}

// One operand's cotangent. `mine` are the axes of the wanted operand by role, `theirs`
// those of the other one; `ct_mine` / `ct_theirs` say where the free axes sit in ct.
struct Roles {
  Ints batch, free, contract;
};
Value cotangent(const Value& ct, const Value& other, const Roles& mine,
                const Roles& theirs, const Ints& ct_theirs) {
  const Value product = dot_general(
      ct, other,
      {ct_theirs, theirs.free, iota_ints(static_cast<std::int64_t>(mine.batch.size())),
       theirs.batch});
  // Its axes: batch, mine.free, then the other operand's contracted axes in order.
  Ints order = iota_ints(static_cast<std::int64_t>(theirs.contract.size()));
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return dim(theirs.contract, a) < dim(theirs.contract, b);
  });
  Ints where = joined({mine.batch, mine.free});
  for (std::int64_t i : order) where.push_back(dim(mine.contract, i));
  return transpose(product, permutation_to(where));
}

std::vector<Tangent> transpose_dot_general(const Site& s, std::span<const Tangent> ct) {
  std::vector<Tangent> result(2);
  if (!ct[0]) return result;
  const DotDims d = dims_of(s.attrs);
  const Roles lhs{d.lhs_batch, lhs_free(d, s.in[0].rank()), d.lhs_contract};
  const Roles rhs{d.rhs_batch, rhs_free(d, s.in[1].rank()), d.rhs_contract};
  Ints ct_lhs = iota_ints(static_cast<std::int64_t>(lhs.free.size()));
  Ints ct_rhs = iota_ints(static_cast<std::int64_t>(rhs.free.size()));
  const auto num_batch = static_cast<std::int64_t>(d.lhs_batch.size());
  for (std::int64_t& a : ct_lhs) a += num_batch;
  for (std::int64_t& a : ct_rhs)
    a += num_batch + static_cast<std::int64_t>(ct_lhs.size());
  if (s.is_linear(0)) result[0] = cotangent(*ct[0], s.in[1], lhs, rhs, ct_rhs);
  if (s.is_linear(1)) result[1] = cotangent(*ct[0], s.in[0], rhs, lhs, ct_lhs);
  return result;
}

// Axis numbers after a new axis was inserted at `at`.
Ints shifted(Ints axes, std::int64_t at) {
  for (std::int64_t& a : axes)
    if (a >= at) ++a;
  return axes;
}

// A batched axis on both sides is one more batch axis, on one side one more free axis.
BatchResult batch_dot_general(const Site& s, std::span<const BatchAxis> axes) {
  DotDims d = dims_of(s.attrs);
  const BatchAxis l = axes[0], r = axes[1];
  if (l) {
    d.lhs_batch = shifted(d.lhs_batch, *l);
    d.lhs_contract = shifted(d.lhs_contract, *l);
  }
  if (r) {
    d.rhs_batch = shifted(d.rhs_batch, *r);
    d.rhs_contract = shifted(d.rhs_contract, *r);
  }
  if (l && r) {
    d.lhs_batch.insert(d.lhs_batch.begin(), *l);
    d.rhs_batch.insert(d.rhs_batch.begin(), *r);
  }
  const Value y = emit1(s.op, {s.in[0], s.in[1]}, to_attrs(d), s.loc);
  if (l && r) return {{y}, {0}};
  const Ints left = lhs_free(d, s.in[0].rank()), right = rhs_free(d, s.in[1].rank());
  auto at = static_cast<std::int64_t>(d.lhs_batch.size());
  if (l) at += std::find(left.begin(), left.end(), *l) - left.begin();
  if (r)
    at += static_cast<std::int64_t>(left.size()) +
          (std::find(right.begin(), right.end(), *r) - right.begin());
  return {{y}, {at}};
}

// Along the other operand's free axes every contracted position is met.
AxisFlow across(const Ints& contract, std::size_t i) {
  return i < contract.size() ? AxisFlow{Flow::mixed, contract[i]}
                             : AxisFlow{Flow::fresh, -1};
}

PositionMap positions_dot_general(const Signature& s) {
  const DotDims d = dims_of(s.attrs);
  const Ints left = lhs_free(d, s.in[0].rank()), right = rhs_free(d, s.in[1].rank());
  InputFlow lhs, rhs;
  for (std::int64_t a : d.lhs_batch) lhs.axes.push_back({Flow::same, a});
  for (std::int64_t a : d.rhs_batch) rhs.axes.push_back({Flow::same, a});
  for (std::size_t i = 0; i < left.size(); ++i) {
    lhs.axes.push_back({Flow::same, left[i]});
    rhs.axes.push_back(across(d.rhs_contract, i));
  }
  for (std::size_t i = 0; i < right.size(); ++i) {
    lhs.axes.push_back(across(d.lhs_contract, i));
    rhs.axes.push_back({Flow::same, right[i]});
  }
  return {{{lhs}, {rhs}}};
}

Ints normalized(Ints axes, std::int64_t rank) {
  for (std::int64_t& a : axes) a = normalize_axis("dot_general", a, rank);
  return axes;
}

}  // namespace

const OpDef dot_general_op = {
    .name = "dot_general",
    .arity = 2,
    .attrs = {{"lhs_batch", AttrKind::ints},
              {"lhs_contract", AttrKind::ints},
              {"rhs_batch", AttrKind::ints},
              {"rhs_contract", AttrKind::ints}},
    .infer = infer_dot_general,
    .eval = eval_dot_general,
    .lower = lower_dot_general,
    .code =
        "dot_general($0, $1, {lhs_contract}, {rhs_contract}, {lhs_batch}, "
        "{rhs_batch})",
    .jvp = product_jvp,
    .transpose = transpose_dot_general,
    .batch = batch_dot_general,
    .positions = positions_dot_general,
};

Value dot_general(Arg lhs, Arg rhs, const DotDims& dims) {
  Values v = promoted({lhs, rhs});
  const std::int64_t l = v[0].rank(), r = v[1].rank();
  const DotDims d{normalized(dims.lhs_contract, l), normalized(dims.rhs_contract, r),
                  normalized(dims.lhs_batch, l), normalized(dims.rhs_batch, r)};
  return emit1(dot_general_op, std::move(v), to_attrs(d), lhs.loc);
}

Value dot(Arg a, Arg b) {
  const std::int64_t l = a.value.rank(), r = b.value.rank();
  BT_REQUIRE(l > 0 && r > 0,
             fmt::format("dot: operands need at least one axis, got {} "
                         "and {}",
                         to_string(a.value.shape()), to_string(b.value.shape())));
  const std::int64_t rhs = r == 1 ? 0 : r - 2;
  BT_REQUIRE(a.value.dim(l - 1) == b.value.dim(rhs),
             fmt::format("dot: {} and {} do not chain", to_string(a.value.shape()),
                         to_string(b.value.shape())));
  return dot_general(a, b, {{l - 1}, {rhs}});
}

Value stacked_dot(Arg a, Arg b) {
  const Shape& l = a.value.shape();
  const Shape& r = b.value.shape();
  if (l.size() < 2 || r.size() <= 2) return dot(a, b);
  const Shape left(l.end() - 2, l.end()), right(r.end() - 2, r.end());
  const auto stack =
      broadcast_shapes(Shape(l.begin(), l.end() - 2), Shape(r.begin(), r.end() - 2));
  BT_REQUIRE(
      stack && left[1] == right[0],
      fmt::format("stacked_dot: {} and {} do not chain", to_string(l), to_string(r)));
  Ints batch(stack->size());
  std::iota(batch.begin(), batch.end(), 0);
  const auto n = static_cast<std::int64_t>(batch.size());
  return dot_general(Arg(broadcast_to(a, joined({*stack, left})), a.loc),
                     Arg(broadcast_to(b, joined({*stack, right})), a.loc),
                     {{n + 1}, {n}, batch, batch});
}

}  // namespace braintrace
