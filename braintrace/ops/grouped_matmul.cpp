// SPDX-License-Identifier: Apache-2.0
// Trainable product per group: y[..., g, n] = x[..., g, k] w[g, k, n] + b[g, n].
#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_grouped_matmul(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("grouped_matmul", in, 2);
  check_hooks("grouped_matmul", attrs);
  const Shape &x = in[0].shape, &w = in[1].shape;
  BT_REQUIRE(w.size() == 3,
             fmt::format("grouped_matmul: weight must be [groups, in, out], got {}",
                         to_string(w)));
  BT_REQUIRE(x.size() >= 2 && x.back() == w[1] && x[x.size() - 2] == w[0],
             fmt::format("grouped_matmul: x must be [..., {}, {}] for weight {}, got {}",
                         w[0], w[1], to_string(w), to_string(x)));
  check_bias("grouped_matmul", in, 2, {w[0], w[2]});
  Type y = in[0];
  y.shape.back() = w[2];
  return {y};
}

template <class T>
void run_grouped_matmul(const Kernel& k) {
  const Shape& ws = k.in[1].shape();
  const std::int64_t groups = ws[0], inner = ws[1], n = ws[2];
  const T *x = k.in[0].data<T>(), *w = k.in[1].data<T>();
  const T* b = k.in.size() > 2 ? k.in[2].data<T>() : nullptr;
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t e = 0, size = k.out[0].size(); e < size; ++e) {
    const std::int64_t o = e % n, row = e / n, g = row % groups;
    double sum = b ? static_cast<double>(b[g * n + o]) : 0.0;
    for (std::int64_t i = 0; i < inner; ++i)
      sum += static_cast<double>(x[row * inner + i]) *
             static_cast<double>(w[(g * inner + i) * n + o]);
    y[e] = static_cast<T>(sum);
  }
}

void eval_grouped_matmul(const Kernel& k) {
  if (k.out[0].dtype() == DType::f64) return run_grouped_matmul<double>(k);
  run_grouped_matmul<float>(k);
}

Attrs dot_attrs(std::int64_t x_rank) {
  return {{"lhs_batch", Ints{x_rank - 2}},
          {"lhs_contract", Ints{x_rank - 1}},
          {"rhs_batch", Ints{0}},
          {"rhs_contract", Ints{1}}};
}

// [g, lead..., n] -> [lead..., g, n], behind `skip` axes.
Value groups_inside(const Value& v, std::int64_t skip) {
  Ints permutation = other_axes(v.rank(), {skip});
  permutation.insert(permutation.end() - 1, skip);
  return transpose(v, permutation);
}

Lane product_grouped_matmul(const Lane& x, const Lane& w, SourceLoc loc) {
  const std::int64_t x_rank = x.value.rank() - (x.axis ? 1 : 0);
  const Lane y = fronted(on_lanes(dot_general_op, {x, w}, dot_attrs(x_rank), loc));
  return {groups_inside(y.value, y.axis ? 1 : 0), y.axis};
}

std::vector<Tangent> jvp_grouped_matmul(const Site& s, std::span<const Tangent> d) {
  std::vector<Tangent> parts(3);
  if (d[0]) parts[0] = product_grouped_matmul({*d[0], {}}, {s.in[1], {}}, s.loc).value;
  if (d[1]) parts[1] = product_grouped_matmul({s.in[0], {}}, {*d[1], {}}, s.loc).value;
  if (d.size() > 2) parts[2] = bias_tangent(d[2], s.out[0].type());
  return {sum_of(parts)};
}

BatchResult batch_grouped_matmul(const Site& s, std::span<const BatchAxis> axes) {
  if (only_x_batched(axes)) return batch_leading(s, axes);
  Lane y = product_grouped_matmul(lane(s, axes, 0), lane(s, axes, 1), s.loc);
  if (s.in.size() > 2) y = add_bias(y, lane(s, axes, 2));
  return as_result(y);
}

Rewrite inline_body_grouped_matmul(const Site& s) {
  const Value y = product_grouped_matmul({s.in[0], {}}, {s.in[1], {}}, s.loc).value;
  if (s.in.size() < 3) return {{y}};
  return {{y + *bias_tangent(s.in[2], y.type())}};
}

PositionMap positions_grouped_matmul(const Signature& s) {
  const std::int64_t last = s.in[0].rank() - 1;
  InputFlow x = identity_flow(last), w;
  x.axes.push_back({Flow::mixed, last});
  w.axes.assign(static_cast<std::size_t>(last - 1), {Flow::fresh, -1});
  w.axes.push_back({Flow::same, 0});
  w.axes.push_back({Flow::same, 2});
  PositionMap map{{{x}, {w}}};
  if (s.in.size() > 2) map.flow.push_back({bias_flow(last + 1, 2)});
  return map;
}

// ---- eligibility ----

std::string_view reference_name_grouped_matmul(const Signature& s) {
  return s.in[0].rank() == 2 ? "etp_gmv" : "etp_gmm";
}

const EtpRule rule_grouped_matmul = {
    .x = 0,
    .weights = weight_and_bias,
    .trace = outer_trace,
    .anchor = outer_anchor,
    .instant = outer_instant,
    .reference_name = reference_name_grouped_matmul,
};

}  // namespace

const OpDef grouped_matmul_op = {
    .name = "grouped_matmul",
    .arity = kVariadic,
    .attrs = {{"hooks", AttrKind::text, true}},
    .infer = infer_grouped_matmul,
    .eval = eval_grouped_matmul,
    .code = "grouped_matmul($*)",
    .jvp = jvp_grouped_matmul,
    .batch = batch_grouped_matmul,
    .positions = positions_grouped_matmul,
    .etp = &rule_grouped_matmul,
    .inline_body = inline_body_grouped_matmul,
};

Value grouped_matmul(Arg x, Arg weight, const Tangent& bias, const EtpHooks& hooks) {
  EtpOperands o = etp_operands("grouped_matmul", x, weight, bias, hooks);
  return emit1(grouped_matmul_op, std::move(o.values), with_hooks({}, o.hooks), x.loc);
}

}  // namespace braintrace
