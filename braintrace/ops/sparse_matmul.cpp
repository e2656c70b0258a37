// SPDX-License-Identifier: Apache-2.0
// Trainable product with fixed connectivity: stored value p joins input rows[p] to output
// cols[p]: y[..., cols[p]] += x[..., rows[p]] w[p], plus b.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/sparse.h"

namespace braintrace {
namespace {

std::vector<Type> infer_sparse_matmul(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("sparse_matmul", in, 2);
  check_hooks("sparse_matmul", attrs);
  const Type y = sparse_product_type("sparse_matmul", in, attrs);
  check_bias("sparse_matmul", in, 2, {y.shape.back()});
  return {y};
}

std::vector<Tangent> jvp_sparse_matmul(const Site& s, std::span<const Tangent> d) {
  const SparseStructure structure = sparse_structure(s.attrs);
  std::vector<Tangent> parts(3);
  if (d[0]) parts[0] = sparse_dot(*d[0], s.in[1], structure);
  if (d[1]) parts[1] = sparse_dot(s.in[0], *d[1], structure);
  if (d.size() > 2) parts[2] = bias_tangent(d[2], s.out[0].type());
  return {sum_of(parts)};
}

// With a weight per lane the op leaves the trace graph: plain products.
BatchResult batch_sparse_matmul(const Site& s, std::span<const BatchAxis> axes) {
  if (only_x_batched(axes)) return batch_leading(s, axes);
  Lane y = on_lanes(sparse_dot_op, {lane(s, axes, 0), lane(s, axes, 1)},
                    sparse_attrs(sparse_structure(s.attrs)), s.loc);
  if (s.in.size() > 2) y = add_bias(y, lane(s, axes, 2));
  return as_result(y);
}

// ---- eligibility ----

Type trace_sparse_matmul(const Signature& s, int slot) {
  Type t = s.out[0];
  if (slot == 0) t.shape.back() = s.in[1].shape[0];
  return t;
}

Anchor anchor_sparse_matmul(const Signature& s, int slot) {
  Anchor a = same_anchor(s.out[0].rank());
  if (slot == 0) a.back().index = s.attrs.indices("cols");
  return a;
}

Value instant_sparse_matmul(const Site& s, int slot, const Value& df) {
  if (slot != 0) return df;
  const SparseStructure structure = sparse_structure(s.attrs);
  return at_rows(s.in[0], structure) * at_cols(df, structure);
}

std::optional<Adjacency> adjacency_sparse_matmul(const Signature& s, std::int64_t size) {
  if (s.attrs.integer("in") != size || s.attrs.integer("out") != size)
    return std::nullopt;
  Adjacency a{size, std::vector<bool>(static_cast<std::size_t>(size * size), false)};
  const IndexList &rows = s.attrs.indices("rows"), &cols = s.attrs.indices("cols");
  for (std::size_t p = 0; p < rows.size(); ++p)
    a.depends[static_cast<std::size_t>(cols[p] * size + rows[p])] = true;
  return a;
}

std::string_view reference_name_sparse_matmul(const Signature& s) {
  return s.in[0].rank() == 1 ? "etp_sp_mv" : "etp_sp_mm";
}

const EtpRule rule_sparse_matmul = {
    .x = 0,
    .weights = weight_and_bias,
    .trace = trace_sparse_matmul,
    .anchor = anchor_sparse_matmul,
    .instant = instant_sparse_matmul,
    .adjacency = adjacency_sparse_matmul,
    .reference_name = reference_name_sparse_matmul,
};

}  // namespace

const OpDef sparse_matmul_op = {
    .name = "sparse_matmul",
    .arity = kVariadic,
    .attrs = sparse_attr_specs({{"hooks", AttrKind::text, true}}),
    .infer = infer_sparse_matmul,
    .eval = eval_sparse_product,
    .lower = lower_sparse_product,
    .code = "sparse_matmul($*, {in}, {out}, {rows}, {cols})",
    .jvp = jvp_sparse_matmul,
    .batch = batch_sparse_matmul,
    .positions = sparse_product_positions,
    .etp = &rule_sparse_matmul,
};

Value sparse_matmul(Arg x, Arg weight, const SparseStructure& structure,
                    const Tangent& bias, const EtpHooks& hooks) {
  EtpOperands o = etp_operands("sparse_matmul", x, weight, bias, hooks);
  return emit1(sparse_matmul_op, std::move(o.values),
               with_hooks(sparse_attrs(structure), o.hooks), x.loc);
}

}  // namespace braintrace
