// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/product.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"

namespace braintrace {

Values promoted(const std::vector<Arg>& args) {
  DType dtype = DType::boolean;
  for (const Arg& a : args) dtype = promote(dtype, settle(a).dtype());
  Values values;
  for (const Arg& a : args) values.push_back(astype(a, dtype));
  return values;
}

std::vector<Tangent> product_jvp(const Site& s, std::span<const Tangent> d) {
  Tangent left, right;
  if (d[0]) left = emit1(s.op, {*d[0], s.in[1]}, s.attrs, s.loc);
  if (d[1]) right = emit1(s.op, {s.in[0], *d[1]}, s.attrs, s.loc);
  return {sum_tangents(left, right)};
}

Value move_to_front(const Value& v, std::int64_t axis) {
  if (axis == 0) return v;
  Ints permutation = {axis};
  for (std::int64_t a : other_axes(v.rank(), {axis})) permutation.push_back(a);
  return transpose(v, permutation);
}

Ints other_axes(std::int64_t rank, const Ints& taken) {
  Ints rest;
  for (std::int64_t a = 0; a < rank; ++a)
    if (std::find(taken.begin(), taken.end(), a) == taken.end()) rest.push_back(a);
  return rest;
}

Ints permutation_to(const Ints& where) {
  Ints permutation(where.size());
  for (std::size_t i = 0; i < where.size(); ++i)
    permutation[static_cast<std::size_t>(where[i])] = static_cast<std::int64_t>(i);
  return permutation;
}

void check_distinct_axes(std::string_view who, const Ints& axes, std::int64_t rank) {
  std::vector<bool> seen(static_cast<std::size_t>(rank));
  for (std::int64_t a : axes) {
    BT_REQUIRE(a >= 0 && a < rank,
               fmt::format("{}: axis {} is outside rank {}", who, a, rank));
    BT_REQUIRE(!seen[static_cast<std::size_t>(a)],
               fmt::format("{}: axis {} is named twice", who, a));
    seen[static_cast<std::size_t>(a)] = true;
  }
}

}  // namespace braintrace
