// SPDX-License-Identifier: Apache-2.0
// Trainable low-rank product: y[..., o] = alpha x[..., i] b[i, r] a[r, o] + bias[o]. Its
// trace lives in the space of the effective weight alpha b a.
#include <cmath>

#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_lora_matmul(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("lora_matmul", in, 3);
  BT_REQUIRE(
      std::isfinite(attrs.real("alpha")),
      fmt::format("lora_matmul: alpha must be finite, got {}", attrs.real("alpha")));
  const Shape &x = in[0].shape, &b = in[1].shape, &a = in[2].shape;
  BT_REQUIRE(
      b.size() == 2 && a.size() == 2 && b[1] == a[0],
      fmt::format("lora_matmul: needs b [in, rank] and a [rank, out], got {} and {}",
                  to_string(b), to_string(a)));
  BT_REQUIRE(!x.empty() && x.back() == b[0],
             fmt::format("lora_matmul: x must be [..., {}] for b {}, got {}", b[0],
                         to_string(b), to_string(x)));
  check_bias("lora_matmul", in, 3, {a[1]});
  Type y = in[0];
  y.shape.back() = a[1];
  return {y};
}

// y[0..n) += factor * x[0..inner) . w
template <class T>
void add_product(const std::vector<double>& x, const T* w, double factor,
                 std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t o = 0; o < y.size(); ++o)
      y[o] += factor * x[i] * static_cast<double>(w[i * y.size() + o]);
}

template <class T>
void run_lora_matmul(const Kernel& k) {
  const auto inner = static_cast<std::size_t>(k.in[1].shape()[0]);
  const auto rank = static_cast<std::size_t>(k.in[1].shape()[1]);
  const auto n = static_cast<std::size_t>(k.in[2].shape()[1]);
  const T* x = k.in[0].data<T>();
  const T* bias = k.in.size() > 3 ? k.in[3].data<T>() : nullptr;
  T* y = k.out[0].mutable_data<T>();
  const std::size_t lead = n == 0 ? 0 : static_cast<std::size_t>(k.out[0].size()) / n;
  for (std::size_t r = 0; r < lead; ++r) {
    const std::vector<double> row(x + r * inner, x + (r + 1) * inner);
    std::vector<double> low(rank), out(n);
    for (std::size_t o = 0; o < n; ++o)
      out[o] = bias ? static_cast<double>(bias[o]) : 0.0;
    add_product(row, k.in[1].data<T>(), 1.0, low);
    add_product(low, k.in[2].data<T>(), k.attrs.real("alpha"), out);
    for (std::size_t o = 0; o < n; ++o) y[r * n + o] = static_cast<T>(out[o]);
  }
}

void eval_lora_matmul(const Kernel& k) {
  if (k.out[0].dtype() == DType::f64) return run_lora_matmul<double>(k);
  run_lora_matmul<float>(k);
}

Value plain_lora_matmul(double alpha, const Value& x, const Value& b, const Value& a) {
  return dot(dot(x, b), a) * alpha;
}

std::vector<Tangent> jvp_lora_matmul(const Site& s, std::span<const Tangent> d) {
  const double alpha = s.attrs.real("alpha");
  std::vector<Tangent> parts(4);
  if (d[0]) parts[0] = plain_lora_matmul(alpha, *d[0], s.in[1], s.in[2]);
  if (d[1]) parts[1] = plain_lora_matmul(alpha, s.in[0], *d[1], s.in[2]);
  if (d[2]) parts[2] = plain_lora_matmul(alpha, s.in[0], s.in[1], *d[2]);
  if (d.size() > 3) parts[3] = bias_tangent(d[3], s.out[0].type());
  return {sum_of(parts)};
}

BatchResult batch_lora_matmul(const Site& s, std::span<const BatchAxis> axes) {
  if (only_x_batched(axes)) return batch_leading(s, axes);
  Lane y = dot_lanes(dot_lanes(lane(s, axes, 0), lane(s, axes, 1), s.loc),
                     lane(s, axes, 2), s.loc);
  y.value = y.value * s.attrs.real("alpha");
  if (s.in.size() > 3) y = add_bias(y, lane(s, axes, 3));
  return as_result(y);
}

Rewrite inline_body_lora_matmul(const Site& s) {
  const Value y = plain_lora_matmul(s.attrs.real("alpha"), s.in[0], s.in[1], s.in[2]);
  if (s.in.size() < 4) return {{y}};
  return {{y + *bias_tangent(s.in[3], y.type())}};
}

PositionMap positions_lora_matmul(const Signature& s) {
  const std::int64_t last = s.in[0].rank() - 1;
  InputFlow x = identity_flow(last), b, a;
  x.axes.push_back({Flow::mixed, last});
  b.axes.assign(static_cast<std::size_t>(last), {Flow::fresh, -1});
  a.axes = b.axes;
  b.axes.push_back({Flow::mixed, 1});
  a.axes.push_back({Flow::same, 1});
  PositionMap map{{{x}, {b}, {a}}};
  if (s.in.size() > 3) map.flow.push_back({bias_flow(last + 1, 1)});
  return map;
}

// ---- eligibility: slots are the effective weight and the bias ----

std::vector<WeightInput> weights_lora_matmul(const Signature& s) {
  std::vector<WeightInput> w = {{"lora_b", 1}, {"lora_a", 2}};
  if (s.in.size() > 3) w.push_back({"bias", 3});
  return w;
}

Values effective(const Site& s) {
  Values v = {dot(s.in[1], s.in[2]) * s.attrs.real("alpha")};
  if (s.in.size() > 3) v.push_back(s.in[3]);
  return v;
}

std::string_view reference_name_lora_matmul(const Signature& s) {
  return s.in[0].rank() == 1 ? "etp_lora_mv" : "etp_lora_mm";
}

const EtpRule rule_lora_matmul = {
    .x = 0,
    .weights = weights_lora_matmul,
    .effective = effective,
    .trace = outer_trace,
    .anchor = outer_anchor,
    .instant = outer_instant,
    .reference_name = reference_name_lora_matmul,
};

}  // namespace

const OpDef lora_matmul_op = {
    .name = "lora_matmul",
    .arity = kVariadic,
    .attrs = {{"alpha", AttrKind::real}},
    .infer = infer_lora_matmul,
    .eval = eval_lora_matmul,
    .code = "lora_matmul($*, {alpha})",
    .jvp = jvp_lora_matmul,
    .batch = batch_lora_matmul,
    .positions = positions_lora_matmul,
    .etp = &rule_lora_matmul,
    .inline_body = inline_body_lora_matmul,
};

Value lora_matmul(Arg x, Arg b, Arg a, double alpha, const Tangent& bias) {
  std::vector<Arg> args = {x, b, a};
  if (bias) args.emplace_back(*bias, std::source_location{});
  return emit1(lora_matmul_op, promoted(args), {{"alpha", alpha}}, x.loc);
}

}  // namespace braintrace
