// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/random_draw.h"

#include <fmt/format.h>

#include "braintrace/ops/batch.h"
#include "braintrace/ops/elementwise.h"

namespace braintrace {

void require_key(const Type& key) {
  BT_REQUIRE_KIND(key == (Type{DType::i32, {2}}), ErrorKind::type,
                  fmt::format("key must be i32[2], got {}", to_string(key)));
}

std::vector<Type> draw_type(std::span<const Type> in, const Attrs& attrs) {
  require_key(in[0]);
  const DType dtype = attrs.dtype("dtype");
  BT_REQUIRE_KIND(is_float(dtype), ErrorKind::type,
                  fmt::format("dtype must be f32 or f64, got {}", to_string(dtype)));
  return {{dtype, attrs.ints("shape")}};
}

BatchResult each_lane(const Site& s, std::span<const BatchAxis> axes) {
  const std::int64_t n = batch_size(s.in, axes);
  Values lanes;
  for (std::int64_t i = 0; i < n; ++i) {
    Values in;
    for (std::size_t j = 0; j < s.in.size(); ++j) in.push_back(lane(s.in[j], axes[j], i));
    lanes.push_back(emit1(s.op, in, s.attrs, s.loc));
  }
  if (n > 0) return {{stack(lanes)}, {0}};
  std::vector<Type> types;
  for (std::size_t j = 0; j < s.in.size(); ++j) {
    Type t = s.in[j].type();
    if (axes[j]) t.shape = removed(t.shape, *axes[j]);
    types.push_back(t);
  }
  const Type one = infer_types(s.op, types, s.attrs)[0];
  return {{zeros(inserted(one.shape, 0, 0), one.dtype)}, {0}};
}

PositionMap draw_positions(const Signature&) { return {{{no_flow()}}}; }

Value draw(const OpDef& op, const Arg& key, const Shape& shape, DType dtype) {
  return emit1(op, {settle(key)}, {{"dtype", dtype}, {"shape", shape}}, key.loc);
}

}  // namespace braintrace
