// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/etp.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {

EtpOperands etp_operands(std::string_view who, const Arg& x, const Arg& weight,
                         const Tangent& bias, const EtpHooks& hooks) {
  BT_REQUIRE(bias || !hooks.bias, fmt::format("{}: a bias hook needs a bias", who));
  EtpOperands o;
  Arg w = weight;
  if (hooks.weight) {
    w.value = hooks.weight(settle(weight));
    o.hooks = "weight";
  }
  std::vector<Arg> args = {x, w};
  if (bias)
    args.emplace_back(hooks.bias ? hooks.bias(*bias) : *bias, std::source_location{});
  if (hooks.bias) o.hooks += o.hooks.empty() ? "bias" : ",bias";
  o.values = promoted(args);
  return o;
}

Attrs with_hooks(Attrs attrs, const std::string& hooks) {
  if (!hooks.empty()) attrs.set("hooks", hooks);
  return attrs;
}

void check_etp_inputs(std::string_view who, std::span<const Type> in, std::size_t least,
                      std::size_t skip) {
  BT_REQUIRE(
      in.size() == least || in.size() == least + 1,
      fmt::format("{}: needs {} inputs and maybe a bias, got {}", who, least, in.size()));
  for (const Type& t : in.subspan(skip))
    BT_REQUIRE_KIND(t.dtype == in[skip].dtype && is_float(t.dtype), ErrorKind::type,
                    fmt::format("{}: needs floats of one type, got {} and {}", who,
                                to_string(in[skip]), to_string(t)));
}

void check_bias(std::string_view who, std::span<const Type> in, std::size_t index,
                const Shape& shape) {
  if (in.size() <= index) return;
  BT_REQUIRE(in[index].shape == shape,
             fmt::format("{}: bias must be {}, got {}", who, to_string(shape),
                         to_string(in[index].shape)));
}

void check_hooks(std::string_view who, const Attrs& attrs) {
  if (!attrs.has("hooks")) return;
  const std::string& h = attrs.text("hooks");
  BT_REQUIRE(h == "weight" || h == "bias" || h == "weight,bias",
             fmt::format("{}: hooks must name weight, bias or both, got '{}'", who, h));
}

Tangent sum_of(const std::vector<Tangent>& parts) {
  Tangent sum;
  for (const Tangent& p : parts) sum = sum_tangents(sum, p);
  return sum;
}

Tangent bias_tangent(const Tangent& db, const Type& y) {
  if (!db) return std::nullopt;
  return broadcast_to(*db, y.shape);
}

Lane lane(const Site& s, std::span<const BatchAxis> axes, std::size_t i) {
  return {s.in[i], axes[i]};
}

Lane on_lanes(const OpDef& op, const std::vector<Lane>& in, const Attrs& attrs,
              SourceLoc loc) {
  Values values;
  std::vector<BatchAxis> axes;
  for (const Lane& v : in) {
    values.push_back(v.value);
    axes.push_back(v.axis);
  }
  const Values none;
  const BatchResult r = batch_node({op, values, none, attrs, loc}, axes);
  return {r.values.at(0), r.axes.at(0)};
}

Lane fronted(const Lane& v) {
  if (!v.axis) return v;
  return {move_to_front(v.value, *v.axis), 0};
}

Lane add_bias(const Lane& y, const Lane& bias) {
  const Lane v = fronted(y), b = fronted(bias);
  if (!b.axis) return {v.value + b.value, v.axis};
  // [lanes, 1..., *bias] against [lanes, *y], or [*y] when only the bias has lanes.
  const std::int64_t y_rank = v.value.rank() - (v.axis ? 1 : 0);
  Shape shape = b.value.shape();
  const std::int64_t missing = y_rank + 1 - b.value.rank();
  shape.insert(shape.begin() + 1, static_cast<std::size_t>(missing), 1);
  return {v.value + reshape(b.value, shape), 0};
}

Lane dot_lanes(const Lane& x, const Lane& w, SourceLoc loc) {
  const std::int64_t x_rank = x.value.rank() - (x.axis ? 1 : 0);
  return fronted(on_lanes(dot_general_op, {x, w},
                          {{"lhs_batch", Ints{}},
                           {"lhs_contract", Ints{x_rank - 1}},
                           {"rhs_batch", Ints{}},
                           {"rhs_contract", Ints{0}}},
                          loc));
}

BatchResult as_result(const Lane& y) { return {{y.value}, {y.axis}}; }

bool only_x_batched(std::span<const BatchAxis> axes) {
  for (const BatchAxis& a : axes.subspan(1))
    if (a) return false;
  return axes[0].has_value();
}

BatchResult batch_leading(const Site& s, std::span<const BatchAxis> axes) {
  Values in(s.in.begin(), s.in.end());
  in[0] = move_to_front(in[0], *axes[0]);
  return {{emit1(s.op, std::move(in), s.attrs, s.loc)}, {0}};
}

InputFlow bias_flow(std::int64_t y_rank, std::int64_t bias_rank) {
  InputFlow f;
  for (std::int64_t a = 0; a < y_rank; ++a) {
    const std::int64_t from = a - (y_rank - bias_rank);
    f.axes.push_back(from < 0 ? AxisFlow{Flow::fresh, -1} : AxisFlow{Flow::same, from});
  }
  return f;
}

std::vector<WeightInput> weight_and_bias(const Signature& s) {
  std::vector<WeightInput> w = {{"weight", 1}};
  if (s.in.size() > 2) w.push_back({"bias", 2});
  return w;
}

Anchor same_anchor(std::int64_t y_rank) {
  Anchor a;
  for (std::int64_t i = 0; i < y_rank; ++i) a.push_back({i, {}});
  return a;
}

Type outer_trace(const Signature& s, int slot) {
  Type t = s.out[0];
  if (slot == 0) t.shape.insert(t.shape.end() - 1, s.in[0].shape.back());
  return t;
}

Anchor outer_anchor(const Signature& s, int slot) {
  Anchor a = same_anchor(s.out[0].rank());
  if (slot == 0) a.insert(a.end() - 1, AnchorAxis{-1, {}});
  return a;
}

Value outer_instant(const Site& s, int slot, const Value& df) {
  if (slot != 0) return df;
  return expand_dims(s.in[0], -1) * expand_dims(df, -2);
}

}  // namespace braintrace
