// SPDX-License-Identifier: Apache-2.0
// scan as straight-line code.
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_rewrite.h"

namespace braintrace {

Rewrite scan_unroll(const Site& s, const UnrollOptions& options) {
  const std::int64_t length = s.attrs.integer("length");
  if (length < 1 || length > options.max_length) return std::nullopt;
  const Graph& body = *s.attrs.graph("body");
  const auto consts = static_cast<std::size_t>(s.attrs.integer("num_consts"));
  const auto carries = static_cast<std::size_t>(s.attrs.integer("num_carry"));
  const bool reverse = s.attrs.flag("reverse");

  Values carry(s.in.begin() + static_cast<std::ptrdiff_t>(consts),
               s.in.begin() + static_cast<std::ptrdiff_t>(consts + carries));
  std::vector<Values> ys(body.outputs().size() - carries,
                         Values(static_cast<std::size_t>(length)));
  for (std::int64_t step = 0; step < length; ++step) {
    const std::int64_t t = reverse ? length - 1 - step : step;
    Values in(s.in.begin(), s.in.begin() + static_cast<std::ptrdiff_t>(consts));
    in.insert(in.end(), carry.begin(), carry.end());
    for (const Value& x : s.in.subspan(consts + carries))
      in.push_back(squeeze(slice_axis(x, 0, t, 1), 0));
    const Values out = inline_graph(body, in);
    carry.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(carries));
    for (std::size_t i = 0; i < ys.size(); ++i)
      ys[i][static_cast<std::size_t>(t)] = out[carries + i];
  }
  std::vector<Value> result = carry;
  for (const Values& y : ys) result.push_back(stack(y));
  return result;
}

}  // namespace braintrace
