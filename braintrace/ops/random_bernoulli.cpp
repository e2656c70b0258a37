// SPDX-License-Identifier: Apache-2.0
// True with probability p: u < p for the u that random_uniform draws in f64.
#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/random_draw.h"

namespace braintrace {
namespace {

std::vector<Type> infer_random_bernoulli(std::span<const Type> in, const Attrs&) {
  require_key(in[0]);
  BT_REQUIRE_KIND(
      is_float(in[1].dtype), ErrorKind::type,
      fmt::format("random_bernoulli: p must be f32 or f64, got {}", to_string(in[1])));
  return {{DType::boolean, in[1].shape}};
}

template <class T>
void draw_where_below(const Kernel& k) {
  const RngKey key = key_from_array(k.in[0]);
  const T* p = k.in[1].data<T>();
  bool* y = k.out[0].mutable_data<bool>();
  for (std::int64_t i = 0, n = k.out[0].size(); i < n; ++i)
    y[i] = uniform_at(key, static_cast<std::uint64_t>(i)) < static_cast<double>(p[i]);
}

void eval_random_bernoulli(const Kernel& k) {
  if (k.in[1].dtype() == DType::f64) return draw_where_below<double>(k);
  draw_where_below<float>(k);
}

// With one key for all lanes every lane compares the same numbers, as a loop would.
BatchResult batch_random_bernoulli(const Site& s, std::span<const BatchAxis> axes) {
  if (axes[0]) return each_lane(s, axes);
  const Value p = astype(move_axis(s.in[1], *axes[1], 0), DType::f64);
  const Shape one = removed(p.shape(), 0);
  return {{random_uniform(s.in[0], one, DType::f64) < p}, {0}};
}

PositionMap positions_random_bernoulli(const Signature& s) {
  return {{{no_flow()}, {identity_flow(s.in[1].rank())}}};
}

}  // namespace

const OpDef random_bernoulli_op = {
    .name = "random_bernoulli",
    .traits = Trait::random | Trait::no_tangent,
    .arity = 2,
    .infer = infer_random_bernoulli,
    .eval = eval_random_bernoulli,
    .lower = lower_draw<RandomKind::bernoulli>,
    .code = "random_bernoulli($0, $1)",
    .batch = batch_random_bernoulli,
    .positions = positions_random_bernoulli,
};

Value random_bernoulli(Arg key, Arg p, const Shape& shape) {
  Arg q = p;
  q.value = is_float(p.value.dtype()) ? settle(p) : astype(p, DType::f32);
  q.weak = false;
  return emit1(random_bernoulli_op, {settle(key), broadcast_to(q, shape)}, {}, key.loc);
}

}  // namespace braintrace
