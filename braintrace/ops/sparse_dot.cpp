// SPDX-License-Identifier: Apache-2.0
// Product with fixed sparse connectivity: y[..., cols[p]] += x[..., rows[p]] w[p].
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/sparse.h"

namespace braintrace {
namespace {

std::vector<Type> infer_sparse_dot(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("sparse_dot", in, 2);
  return {sparse_product_type("sparse_dot", in, attrs)};
}

std::vector<Tangent> transpose_sparse_dot(const Site& s, std::span<const Tangent> ct) {
  std::vector<Tangent> result(2);
  if (!ct[0]) return result;
  const SparseStructure structure = sparse_structure(s.attrs);
  if (s.is_linear(0)) result[0] = sparse_dot(*ct[0], s.in[1], transposed(structure));
  if (s.is_linear(1)) result[1] = sparse_outer(s.in[0], *ct[0], structure);
  return result;
}

// A weight per lane has no structure of its own: gathers and a scatter.
BatchResult batch_sparse_dot(const Site& s, std::span<const BatchAxis> axes) {
  if (!axes[1]) return batch_leading(s, axes);
  const Lane x = fronted(lane(s, axes, 0)), w = fronted(lane(s, axes, 1));
  const std::int64_t x_rank = x.value.rank() - (x.axis ? 1 : 0);
  Shape shape = w.value.shape();
  shape.insert(shape.begin() + 1, static_cast<std::size_t>(x_rank - 1), 1);
  return as_result(
      {gathered_product(x.value, reshape(w.value, shape), sparse_structure(s.attrs)), 0});
}

}  // namespace

const OpDef sparse_dot_op = {
    .name = "sparse_dot",
    .arity = 2,
    .attrs = sparse_attr_specs(),
    .infer = infer_sparse_dot,
    .eval = eval_sparse_product,
    .lower = lower_sparse_product,
    .code = "sparse_dot($*, {in}, {out}, {rows}, {cols})",
    .jvp = product_jvp,
    .transpose = transpose_sparse_dot,
    .batch = batch_sparse_dot,
    .positions = sparse_product_positions,
};

Value sparse_dot(Arg x, Arg weight, const SparseStructure& structure) {
  return emit1(sparse_dot_op, promoted({x, weight}), sparse_attrs(structure), x.loc);
}

}  // namespace braintrace
