// SPDX-License-Identifier: Apache-2.0
// Trainable dense product: y[..., o] = x[..., i] w[i, o] + b[o].
#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_matmul(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("matmul", in, 2);
  check_hooks("matmul", attrs);
  const Shape &x = in[0].shape, &w = in[1].shape;
  BT_REQUIRE(w.size() == 2,
             fmt::format("matmul: weight must be [in, out], got {}", to_string(w)));
  BT_REQUIRE(!x.empty() && x.back() == w[0],
             fmt::format("matmul: x must be [..., {}] for weight {}, got {}", w[0],
                         to_string(w), to_string(x)));
  check_bias("matmul", in, 2, {w[1]});
  Type y = in[0];
  y.shape.back() = w[1];
  return {y};
}

template <class T>
void run_matmul(const Kernel& k) {
  const std::int64_t inner = k.in[1].shape()[0], n = k.in[1].shape()[1];
  const T *x = k.in[0].data<T>(), *w = k.in[1].data<T>();
  const T* b = k.in.size() > 2 ? k.in[2].data<T>() : nullptr;
  T* y = k.out[0].mutable_data<T>();
  std::vector<double> row(static_cast<std::size_t>(n));
  for (std::int64_t r = 0, rows = n == 0 ? 0 : k.out[0].size() / n; r < rows; ++r) {
    for (std::int64_t o = 0; o < n; ++o)
      row[static_cast<std::size_t>(o)] = b ? static_cast<double>(b[o]) : 0.0;
    for (std::int64_t i = 0; i < inner; ++i)
      for (std::int64_t o = 0; o < n; ++o)
        row[static_cast<std::size_t>(o)] +=
            static_cast<double>(x[r * inner + i]) * static_cast<double>(w[i * n + o]);
    for (std::int64_t o = 0; o < n; ++o)
      y[r * n + o] = static_cast<T>(row[static_cast<std::size_t>(o)]);
  }
}

void eval_matmul(const Kernel& k) {
  if (k.out[0].dtype() == DType::f64) return run_matmul<double>(k);
  run_matmul<float>(k);
}

std::vector<Tangent> jvp_matmul(const Site& s, std::span<const Tangent> d) {
  std::vector<Tangent> parts(3);
  if (d[0]) parts[0] = dot(*d[0], s.in[1]);
  if (d[1]) parts[1] = dot(s.in[0], *d[1]);
  if (d.size() > 2) parts[2] = bias_tangent(d[2], s.out[0].type());
  return {sum_of(parts)};
}

// With a weight per lane the op leaves the trace graph: plain products.
BatchResult batch_matmul(const Site& s, std::span<const BatchAxis> axes) {
  if (only_x_batched(axes)) return batch_leading(s, axes);
  Lane y = dot_lanes(lane(s, axes, 0), lane(s, axes, 1), s.loc);
  if (s.in.size() > 2) y = add_bias(y, lane(s, axes, 2));
  return as_result(y);
}

PositionMap positions_matmul(const Signature& s) {
  const std::int64_t last = s.in[0].rank() - 1;
  InputFlow x = identity_flow(last), w;
  x.axes.push_back({Flow::mixed, last});
  w.axes.assign(static_cast<std::size_t>(last), {Flow::fresh, -1});
  w.axes.push_back({Flow::same, 1});
  PositionMap map{{{x}, {w}}};
  if (s.in.size() > 2) map.flow.push_back({bias_flow(last + 1, 1)});
  return map;
}

Lowering lower_matmul(const Signature& s) {
  return lowering::Gemm{{}, {}, {s.in[0].rank() - 1}, {0}};
}

// ---- eligibility ----

std::optional<Adjacency> adjacency_matmul(const Signature&, std::int64_t size) {
  return Adjacency{size, std::vector<bool>(static_cast<std::size_t>(size * size), true)};
}

std::string_view reference_name_matmul(const Signature& s) {
  return s.in[0].rank() == 1 ? "etp_mv" : "etp_mm";
}

const EtpRule rule_matmul = {
    .x = 0,
    .weights = weight_and_bias,
    .trace = outer_trace,
    .anchor = outer_anchor,
    .instant = outer_instant,
    .adjacency = adjacency_matmul,
    .reference_name = reference_name_matmul,
};

}  // namespace

const OpDef matmul_op = {
    .name = "matmul",
    .arity = kVariadic,
    .attrs = {{"hooks", AttrKind::text, true}},
    .infer = infer_matmul,
    .eval = eval_matmul,
    .lower = lower_matmul,
    .code = "matmul($*)",
    .jvp = jvp_matmul,
    .batch = batch_matmul,
    .positions = positions_matmul,
    .etp = &rule_matmul,
};

Value matmul(Arg x, Arg weight, const Tangent& bias, const EtpHooks& hooks) {
  EtpOperands o = etp_operands("matmul", x, weight, bias, hooks);
  return emit1(matmul_op, std::move(o.values), with_hooks({}, o.hooks), x.loc);
}

}  // namespace braintrace
