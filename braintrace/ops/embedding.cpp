// SPDX-License-Identifier: Apache-2.0
// Trainable table look-up: y[..., d] = w[index[...], d].
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

std::vector<Type> infer_embedding(std::span<const Type> in, const Attrs& attrs) {
  check_hooks("embedding", attrs);
  BT_REQUIRE_KIND(
      in[0].dtype == DType::i32, ErrorKind::type,
      fmt::format("embedding: indices must be i32, got {}", to_string(in[0])));
  BT_REQUIRE_KIND(
      is_float(in[1].dtype), ErrorKind::type,
      fmt::format("embedding: weight must be f32 or f64, got {}", to_string(in[1])));
  BT_REQUIRE(in[1].rank() == 2,
             fmt::format("embedding: weight must be [rows, features], got {}",
                         to_string(in[1].shape)));
  Type y{in[1].dtype, in[0].shape};
  y.shape.push_back(in[1].shape[1]);
  return {y};
}

template <class T>
void run_embedding(const Kernel& k) {
  const std::int64_t rows = k.in[1].shape()[0], width = k.in[1].shape()[1];
  const std::int32_t* index = k.in[0].data<std::int32_t>();
  const T* w = k.in[1].data<T>();
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t i = 0, n = k.in[0].size(); i < n; ++i) {
    BT_REQUIRE(index[i] >= 0 && index[i] < rows,
               fmt::format("embedding: index {} is outside the {} rows", index[i], rows));
    std::copy_n(w + index[i] * width, width, y + i * width);
  }
}

void eval_embedding(const Kernel& k) {
  if (k.out[0].dtype() == DType::f64) return run_embedding<double>(k);
  run_embedding<float>(k);
}

std::vector<Tangent> jvp_embedding(const Site& s, std::span<const Tangent> d) {
  if (!d[1]) return {std::nullopt};
  return {take(*d[1], s.in[0], 0)};
}

// With a table per lane: look-ups one lane at a time, so that a bad index cannot reach
// another lane's rows.
BatchResult batch_embedding(const Site& s, std::span<const BatchAxis> axes) {
  if (only_x_batched(axes)) return batch_leading(s, axes);
  const Value table = move_to_front(s.in[1], *axes[1]);
  if (!axes[0]) return {{take(table, s.in[0], 1)}, {0}};
  const Value index = move_to_front(s.in[0], *axes[0]);
  const std::int64_t lanes = table.dim(0);
  if (lanes == 0) {
    Shape shape = index.shape();
    shape.push_back(table.dim(-1));
    return {{zeros(shape, table.dtype())}, {0}};
  }
  Values parts;
  for (std::int64_t i = 0; i < lanes; ++i)
    parts.push_back(take(squeeze(slice_axis(table, 0, i, 1), 0),
                         squeeze(slice_axis(index, 0, i, 1), 0), 0));
  return {{stack(parts, 0)}, {0}};
}

Rewrite inline_body_embedding(const Site& s) { return {{take(s.in[1], s.in[0], 0)}}; }

PositionMap positions_embedding(const Signature& s) {
  const std::int64_t lead = s.in[0].rank();
  InputFlow index = identity_flow(lead), w;
  index.axes.push_back({Flow::fresh, -1});
  for (std::int64_t a = 0; a < lead; ++a)
    w.axes.push_back(a == 0 ? AxisFlow{Flow::mixed, 0} : AxisFlow{Flow::fresh, -1});
  w.axes.push_back({Flow::same, 1});
  return {{{index}, {w}}};
}

// ---- eligibility ----

Type trace_embedding(const Signature& s, int) {
  Type t = s.out[0];
  t.shape.insert(t.shape.end() - 1, s.in[1].shape[0]);
  return t;
}

Anchor anchor_embedding(const Signature& s, int) {
  Anchor a = same_anchor(s.out[0].rank());
  a.insert(a.end() - 1, AnchorAxis{-1, {}});
  return a;
}

Value x_repr(const Site& s) { return one_hot(s.in[0], s.in[1].dim(0), s.in[1].dtype()); }

Value instant_embedding(const Site& s, int, const Value& df) {
  return expand_dims(x_repr(s), -1) * expand_dims(df, -2);
}

std::vector<WeightInput> weights_embedding(const Signature&) { return {{"weight", 1}}; }
bool anchored_embedding(const Signature&) { return false; }

std::string_view reference_name_embedding(const Signature& s) {
  return s.in[0].rank() == 0 ? "etp_emb_v" : "etp_emb";
}

const EtpRule rule_embedding = {
    .x = 0,
    .weights = weights_embedding,
    .trace = trace_embedding,
    .anchor = anchor_embedding,
    .instant = instant_embedding,
    .x_repr = x_repr,
    .anchored = anchored_embedding,
    .reference_name = reference_name_embedding,
};

}  // namespace

const OpDef embedding_op = {
    .name = "embedding",
    .arity = 2,
    .attrs = {{"hooks", AttrKind::text, true}},
    .infer = infer_embedding,
    .eval = eval_embedding,
    .code = "embedding($0, $1)",
    .jvp = jvp_embedding,
    .batch = batch_embedding,
    .positions = positions_embedding,
    .etp = &rule_embedding,
    .inline_body = inline_body_embedding,
};

Value embedding(Arg indices, Arg weight, const Hook& hook) {
  const Value w = settle(weight);
  return emit1(embedding_op, {settle(indices), hook ? hook(w) : w},
               with_hooks({}, hook ? "weight" : ""), indices.loc);
}

}  // namespace braintrace
