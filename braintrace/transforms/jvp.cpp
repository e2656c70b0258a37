// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/jvp.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"

namespace braintrace {

Graph jvp(const Graph& g, const std::vector<bool>& active) {
  BT_REQUIRE(active.size() == g.inputs().size(),
             fmt::format("jvp: the program has {} inputs, got {} active marks",
                         g.inputs().size(), active.size()));
  const auto builder = Builder::create();
  std::vector<Value> inputs;
  for (ValueId v : g.inputs()) inputs.push_back(builder->input(g.type(v)));
  std::vector<Tangent> tangents(active.size());
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) tangents[i] = builder->input(inputs[i].type());
  JvpResult r = jvp_values(g, inputs, tangents);
  std::vector<Value> results = r.outs;
  for (std::size_t i = 0; i < r.outs.size(); ++i) {
    const Type t = r.outs[i].type();
    if (is_float(t.dtype)) results.push_back(materialize(r.tangents[i], t));
  }
  return builder->finish(results);
}

Graph jvp(const Graph& g) { return jvp(g, float_inputs(g)); }

}  // namespace braintrace
