// SPDX-License-Identifier: Apache-2.0
// A new key, independent for every datum.
#include <bit>

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/random_draw.h"

namespace braintrace {
namespace {

std::vector<Type> infer_random_fold_in(std::span<const Type> in, const Attrs&) {
  require_key(in[0]);
  BT_REQUIRE_KIND(in[1] == (Type{DType::i32, {}}), ErrorKind::type,
                  fmt::format("random_fold_in: data must be an i32 scalar, got {}",
                              to_string(in[1])));
  return {in[0]};
}

void eval_random_fold_in(const Kernel& k) {
  const std::int32_t data = *k.in[1].data<std::int32_t>();
  write_key(fold_in(key_from_array(k.in[0]), std::bit_cast<std::uint32_t>(data)),
            k.out[0]);
}

PositionMap positions_random_fold_in(const Signature&) {
  return {{{no_flow()}, {no_flow()}}};
}

}  // namespace

const OpDef random_fold_in_op = {
    .name = "random_fold_in",
    .traits = Trait::random | Trait::no_tangent,
    .arity = 2,
    .infer = infer_random_fold_in,
    .eval = eval_random_fold_in,
    .code = "random_fold_in($0, $1)",
    .batch = each_lane,
    .positions = positions_random_fold_in,
};

Value random_fold_in(Arg key, Arg data) {
  return emit1(random_fold_in_op, {settle(key), settle(data)}, {}, key.loc);
}

}  // namespace braintrace
