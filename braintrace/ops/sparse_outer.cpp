// SPDX-License-Identifier: Apache-2.0
// The entries of an outer product that a sparse structure stores, summed over leading
// axes: w[p] = sum of x[..., rows[p]] y[..., cols[p]].
#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/sparse.h"

namespace braintrace {
namespace {

std::vector<Type> infer_sparse_outer(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("sparse_outer", in, 2);
  check_sparse_attrs("sparse_outer", attrs);
  check_last_axis("sparse_outer", "x", in[0], attrs.integer("in"));
  check_last_axis("sparse_outer", "y", in[1], attrs.integer("out"));
  Shape want = in[0].shape;
  want.back() = in[1].shape.back();
  BT_REQUIRE(in[1].shape == want,
             fmt::format("sparse_outer: leading axes must agree, got {} and {}",
                         to_string(in[0].shape), to_string(in[1].shape)));
  const auto stored = static_cast<std::int64_t>(attrs.indices("rows").size());
  return {{in[0].dtype, {stored}}};
}

template <class T>
void run_sparse_outer(const Kernel& k) {
  const SparseStructure s = sparse_structure(k.attrs);
  const T *x = k.in[0].data<T>(), *y = k.in[1].data<T>();
  T* w = k.out[0].mutable_data<T>();
  const std::int64_t lead = s.in == 0 ? 0 : k.in[0].size() / s.in;
  for (std::size_t p = 0; p < s.rows.size(); ++p) {
    double sum = 0;
    for (std::int64_t l = 0; l < lead; ++l)
      sum += static_cast<double>(x[l * s.in + s.rows[p]]) *
             static_cast<double>(y[l * s.out + s.cols[p]]);
    w[p] = static_cast<T>(sum);
  }
}

void eval_sparse_outer(const Kernel& k) {
  if (k.out[0].dtype() == DType::f64) return run_sparse_outer<double>(k);
  run_sparse_outer<float>(k);
}

Lowering lower_sparse_outer(const Signature& s) {
  return lowering::SparseOuter{s.attrs.indices("rows"), s.attrs.indices("cols")};
}

std::vector<Tangent> transpose_sparse_outer(const Site& s, std::span<const Tangent> ct) {
  std::vector<Tangent> result(2);
  if (!ct[0]) return result;
  const SparseStructure structure = sparse_structure(s.attrs);
  if (s.is_linear(0)) result[0] = sparse_dot(s.in[1], *ct[0], transposed(structure));
  if (s.is_linear(1)) result[1] = sparse_dot(s.in[0], *ct[0], structure);
  return result;
}

// A result per lane: gathers, summed over the leading axes of one lane.
BatchResult batch_sparse_outer(const Site& s, std::span<const BatchAxis> axes) {
  const SparseStructure structure = sparse_structure(s.attrs);
  const Lane x = fronted(lane(s, axes, 0)), y = fronted(lane(s, axes, 1));
  const Value w = at_rows(x.value, structure) * at_cols(y.value, structure);
  Ints lead = iota_ints(w.rank() - 1);
  lead.erase(lead.begin());
  return as_result({lead.empty() ? w : sum(w, {.axes = lead}), 0});
}

// Every connection may read any position.
PositionMap positions_sparse_outer(const Signature& s) {
  InputFlow x, y;
  x.axes.push_back({Flow::mixed, s.in[0].rank() - 1});
  y.axes.push_back({Flow::mixed, s.in[1].rank() - 1});
  return {{{x}, {y}}};
}

}  // namespace

const OpDef sparse_outer_op = {
    .name = "sparse_outer",
    .arity = 2,
    .attrs = sparse_attr_specs(),
    .infer = infer_sparse_outer,
    .eval = eval_sparse_outer,
    .lower = lower_sparse_outer,
    .code = "sparse_outer($*, {in}, {out}, {rows}, {cols})",
    .jvp = product_jvp,
    .transpose = transpose_sparse_outer,
    .batch = batch_sparse_outer,
    .positions = positions_sparse_outer,
};

Value sparse_outer(Arg x, Arg y, const SparseStructure& structure) {
  return emit1(sparse_outer_op, promoted({x, y}), sparse_attrs(structure), x.loc);
}

}  // namespace braintrace
