// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/nn/spatial_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

// [b, C, *spatial] to [b, *spatial, C].
Value channels_to_end(const Value& x) {
  Ints order = iota_ints(x.rank());
  order.erase(order.begin() + 1);
  order.push_back(1);
  return transpose(x, order);
}

// [b, *spatial, C] to [b, C, *spatial].
Value channels_to_front(const Value& x) {
  Ints order = iota_ints(x.rank());
  order.pop_back();
  order.insert(order.begin() + 1, x.rank() - 1);
  return transpose(x, order);
}

}  // namespace

Ints per_axis(std::string_view who, int n, std::string_view what, const PerAxis& given) {
  Ints v = given.values;
  if (v.size() == 1) v.assign(static_cast<std::size_t>(n), v[0]);
  BT_REQUIRE(v.size() == static_cast<std::size_t>(n),
             fmt::format("{}: {} must be one number or {}, got [{}]", who, what, n,
                         fmt::join(given.values, ",")));
  for (std::int64_t e : v) positive(who, what, e);
  return v;
}

Value channels_last(const Value& x, int n, bool channel_first,
                    const std::function<Value(const Value&)>& f) {
  const Shape given = x.shape();
  const Shape lead(given.begin(), given.end() - (n + 1));
  Shape folded(given.end() - (n + 1), given.end());
  folded.insert(folded.begin(), num_elements(lead));
  const Value packed = folded == given ? x : reshape(x, folded);
  const Value y =
      channel_first ? channels_to_front(f(channels_to_end(packed))) : f(packed);
  if (lead.size() == 1) return y;
  const Shape out = y.shape();
  Shape unfolded = lead;
  unfolded.insert(unfolded.end(), out.begin() + 1, out.end());
  return reshape(y, unfolded);
}

}  // namespace braintrace::nn::internal
