// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/transpose.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"

namespace braintrace {

Graph transpose_linear(const Graph& g, const std::vector<bool>& linear) {
  BT_REQUIRE(linear.size() == g.inputs().size(),
             fmt::format("transpose_linear: the program has {} inputs, got {} marks",
                         g.inputs().size(), linear.size()));
  const auto builder = Builder::create();
  std::vector<Value> inputs(linear.size());
  for (std::size_t i = 0; i < linear.size(); ++i)
    if (!linear[i]) inputs[i] = builder->input(g.type(g.inputs()[i]));
  std::vector<Tangent> ct;
  for (ValueId v : g.outputs()) ct.push_back(builder->input(g.type(v)));
  const std::vector<Tangent> in_ct = transpose_values(g, linear, inputs, ct);
  std::vector<Value> results;
  for (std::size_t i = 0; i < linear.size(); ++i)
    if (linear[i]) results.push_back(materialize(in_ct[i], g.type(g.inputs()[i])));
  return builder->finish(results);
}

}  // namespace braintrace
