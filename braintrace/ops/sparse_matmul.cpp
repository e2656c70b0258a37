// SPDX-License-Identifier: Apache-2.0
// Trainable product with fixed connectivity: stored value p joins input rows[p] to output
// cols[p]: y[..., cols[p]] += x[..., rows[p]] w[p], plus b.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void check_indices(std::string_view who, std::string_view name, const Ints& v,
                   std::int64_t size) {
  for (std::int64_t i : v)
    BT_REQUIRE(i >= 0 && i < size,
               fmt::format("{}: {} holds {}, outside 0 .. {}", who, name, i, size - 1));
}

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  check_etp_inputs("sparse_matmul", in, 2);
  check_hooks("sparse_matmul", attrs);
  const std::int64_t n_in = attrs.integer("in"), n_out = attrs.integer("out");
  const Ints &rows = attrs.ints("rows"), &cols = attrs.ints("cols");
  check_shape("sparse_matmul", Shape{n_in, n_out});
  // Indices become i32 in programs.
  BT_REQUIRE(
      n_in <= INT32_MAX && n_out <= INT32_MAX,
      fmt::format("sparse_matmul: at most 2^31 - 1 inputs and outputs, got {} and {}",
                  n_in, n_out));
  BT_REQUIRE(rows.size() == cols.size(),
             fmt::format("sparse_matmul: {} rows but {} cols", rows.size(), cols.size()));
  check_indices("sparse_matmul", "rows", rows, n_in);
  check_indices("sparse_matmul", "cols", cols, n_out);
  const Shape &x = in[0].shape, &w = in[1].shape;
  BT_REQUIRE(w.size() == 1 && w[0] == static_cast<std::int64_t>(rows.size()),
             fmt::format("sparse_matmul: weight must be [{}], one per connection, got {}",
                         rows.size(), to_string(w)));
  BT_REQUIRE(
      !x.empty() && x.back() == n_in,
      fmt::format("sparse_matmul: x must be [..., {}], got {}", n_in, to_string(x)));
  check_bias("sparse_matmul", in, 2, {n_out});
  Type y = in[0];
  y.shape.back() = n_out;
  return {y};
}

template <class T>
void run(const Kernel& k) {
  const std::int64_t n_in = k.attrs.integer("in"), n_out = k.attrs.integer("out");
  const Ints &rows = k.attrs.ints("rows"), &cols = k.attrs.ints("cols");
  const T *x = k.in[0].data<T>(), *w = k.in[1].data<T>();
  const T* b = k.in.size() > 2 ? k.in[2].data<T>() : nullptr;
  T* y = k.out[0].mutable_data<T>();
  std::vector<double> acc(static_cast<std::size_t>(n_out));
  const std::int64_t lead = n_out == 0 ? 0 : k.out[0].size() / n_out;
  for (std::int64_t r = 0; r < lead; ++r) {
    for (std::size_t o = 0; o < acc.size(); ++o)
      acc[o] = b ? static_cast<double>(b[o]) : 0;
    for (std::size_t p = 0; p < rows.size(); ++p)
      acc[static_cast<std::size_t>(cols[p])] +=
          static_cast<double>(x[r * n_in + rows[p]]) * static_cast<double>(w[p]);
    for (std::size_t o = 0; o < acc.size(); ++o)
      y[r * n_out + static_cast<std::int64_t>(o)] = static_cast<T>(acc[o]);
  }
}

void eval(const Kernel& k) {
  if (k.out[0].dtype() == DType::f64) return run<double>(k);
  run<float>(k);
}

Value index(const Attrs& attrs, std::string_view name) {
  const Ints& v = attrs.ints(name);
  return Array::from<std::int32_t>({static_cast<std::int64_t>(v.size())},
                                   std::vector<std::int32_t>(v.begin(), v.end()));
}

// x[..., rows] w scattered to cols; leading axes of both broadcast.
Value plain(const Attrs& attrs, const Value& x, const Value& w) {
  const Value product = take(x, index(attrs, "rows"), -1) * w;
  Shape shape = product.shape();
  shape.back() = attrs.integer("out");
  return scatter_add(zeros(shape, product.dtype()), index(attrs, "cols"), product, -1);
}

std::vector<Tangent> jvp(const Site& s, std::span<const Tangent> d) {
  std::vector<Tangent> parts(3);
  if (d[0]) parts[0] = plain(s.attrs, *d[0], s.in[1]);
  if (d[1]) parts[1] = plain(s.attrs, s.in[0], *d[1]);
  if (d.size() > 2) parts[2] = bias_tangent(d[2], s.out[0].type());
  return {sum_of(parts)};
}

BatchResult batch(const Site& s, std::span<const BatchAxis> axes) {
  if (only_x_batched(axes)) return batch_leading(s, axes);
  const Lane x = fronted(lane(s, axes, 0)), w = fronted(lane(s, axes, 1));
  const std::int64_t x_rank = x.value.rank() - (x.axis ? 1 : 0);
  Value weight = w.value;
  if (w.axis) {
    Shape shape = weight.shape();
    shape.insert(shape.begin() + 1, static_cast<std::size_t>(x_rank - 1), 1);
    weight = reshape(weight, shape);
  }
  Lane y{plain(s.attrs, x.value, weight), std::nullopt};
  if (x.axis || w.axis) y.axis = 0;
  if (s.in.size() > 2) y = add_bias(y, lane(s, axes, 2));
  return as_result(y);
}

PositionMap positions(const Signature& s) {
  const std::int64_t last = s.in[0].rank() - 1;
  InputFlow x = identity_flow(last), w;
  x.axes.push_back({Flow::mixed, last});
  w.axes.assign(static_cast<std::size_t>(last), {Flow::fresh, -1});
  w.axes.push_back({Flow::mixed, 0});
  PositionMap map{{{x}, {w}}};
  if (s.in.size() > 2) map.flow.push_back({bias_flow(last + 1, 1)});
  return map;
}

Lowering lower(const Signature& s) {
  return lowering::Sparse{s.attrs.ints("rows"), s.attrs.ints("cols")};
}

// ---- eligibility ----

Type trace(const Signature& s, int slot) {
  Type t = s.out[0];
  if (slot == 0) t.shape.back() = s.in[1].shape[0];
  return t;
}

Anchor anchor(const Signature& s, int slot) {
  Anchor a = same_anchor(s.out[0].rank());
  if (slot == 0) a.back().index = s.attrs.ints("cols");
  return a;
}

Value instant(const Site& s, int slot, const Value& df) {
  if (slot != 0) return df;
  return take(s.in[0], index(s.attrs, "rows"), -1) * take(df, index(s.attrs, "cols"), -1);
}

std::optional<Adjacency> adjacency(const Signature& s, std::int64_t size) {
  if (s.attrs.integer("in") != size || s.attrs.integer("out") != size)
    return std::nullopt;
  Adjacency a{size, std::vector<bool>(static_cast<std::size_t>(size * size), false)};
  const Ints &rows = s.attrs.ints("rows"), &cols = s.attrs.ints("cols");
  for (std::size_t p = 0; p < rows.size(); ++p)
    a.depends[static_cast<std::size_t>(cols[p] * size + rows[p])] = true;
  return a;
}

std::string_view reference_name(const Signature& s) {
  return s.in[0].rank() == 1 ? "etp_sp_mv" : "etp_sp_mm";
}

const EtpRule rule = {
    .x = 0,
    .weights = weight_and_bias,
    .trace = trace,
    .anchor = anchor,
    .instant = instant,
    .adjacency = adjacency,
    .reference_name = reference_name,
};

}  // namespace

const OpDef sparse_matmul_op = {
    .name = "sparse_matmul",
    .arity = kVariadic,
    .attrs = {{"cols", AttrKind::ints},
              {"hooks", AttrKind::text, true},
              {"in", AttrKind::integer},
              {"out", AttrKind::integer},
              {"rows", AttrKind::ints}},
    .infer = infer,
    .eval = eval,
    .lower = lower,
    .code = "sparse_matmul($*, {in}, {out}, {rows}, {cols})",
    .jvp = jvp,
    .batch = batch,
    .positions = positions,
    .etp = &rule,
};

Value sparse_matmul(Arg x, Arg weight, const SparseStructure& structure,
                    const Tangent& bias, const EtpHooks& hooks) {
  EtpOperands o = etp_operands("sparse_matmul", x, weight, bias, hooks);
  return emit1(sparse_matmul_op, std::move(o.values),
               with_hooks({{"cols", structure.cols},
                           {"in", structure.in},
                           {"out", structure.out},
                           {"rows", structure.rows}},
                          o.hooks),
               x.loc);
}

}  // namespace braintrace
