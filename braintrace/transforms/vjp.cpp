// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/vjp.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/subgraph.h"

namespace braintrace {
namespace {

std::vector<Value> declare_inputs(Builder& builder, const Graph& g) {
  std::vector<Value> inputs;
  for (ValueId v : g.inputs()) inputs.push_back(builder.input(g.type(v)));
  return inputs;
}

std::vector<Value> results_of(const Graph& g, const std::vector<bool>& active,
                              const VjpResult& r) {
  std::vector<Value> results = r.outs;
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) results.push_back(materialize(r.cotangents[i], g.type(g.inputs()[i])));
  return results;
}

}  // namespace

Graph vjp(const Graph& g, const std::vector<bool>& active) {
  const auto builder = Builder::create();
  const std::vector<Value> inputs = declare_inputs(*builder, g);
  std::vector<Tangent> ct;
  for (ValueId v : g.outputs()) {
    const Type& t = g.type(v);
    ct.push_back(is_float(t.dtype) ? Tangent(builder->input(t)) : std::nullopt);
  }
  return builder->finish(results_of(g, active, vjp_values(g, active, inputs, ct)));
}

Graph vjp(const Graph& g) { return vjp(g, float_inputs(g)); }

Graph value_and_grad(const Graph& g, const std::vector<bool>& active) {
  BT_REQUIRE(!g.outputs().empty(), "grad: the program has no outputs");
  const Type& t = g.type(g.outputs()[0]);
  BT_REQUIRE_KIND(
      is_float(t.dtype) && t.rank() == 0, ErrorKind::type,
      fmt::format("grad: the first output must be a float scalar, got {}", to_string(t)));
  const auto builder = Builder::create();
  const std::vector<Value> inputs = declare_inputs(*builder, g);
  std::vector<Tangent> ct(g.outputs().size());
  ct[0] = scalar(1, t.dtype);
  return builder->finish(results_of(g, active, vjp_values(g, active, inputs, ct)));
}

Graph grad(const Graph& g, const std::vector<bool>& active) {
  const Graph both = value_and_grad(g, active);
  return subgraph(both, both.inputs(), both.outputs().subspan(g.outputs().size()));
}

Graph grad(const Graph& g) { return grad(g, float_inputs(g)); }

}  // namespace braintrace
