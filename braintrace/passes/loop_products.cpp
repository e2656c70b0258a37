// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/loop_products_impl.h"

namespace braintrace {

std::optional<LoopProduct> as_loop_product(const LoweredGraph& body, const ScanView& scan,
                                           const Node& n) {
  const auto* gemm = std::get_if<lowering::Gemm>(&body.lowering(n));
  if (!gemm || !gemm->lhs_batch.empty() || gemm->lhs_contract.size() != 1)
    return std::nullopt;
  const Graph& g = body.graph();
  LoopProduct p{&n, n.inputs[0], n.inputs[1], {}, gemm->rhs_contract[0]};
  const bool fits = gemm->lhs_contract[0] == g.type(p.x).rank() - 1 &&
                    g.type(p.weight).rank() == 2 && p.weight.index < scan.num_consts &&
                    p.x.index >= scan.num_consts;
  if (!fits) return std::nullopt;
  if (n.inputs.size() < 3) return p;
  p.bias = n.inputs[2];
  const bool plain = n.inputs.size() == 3 && p.contract == 0 &&
                     p.bias->index < scan.num_consts && g.type(*p.bias).rank() == 1;
  return plain ? std::optional(p) : std::nullopt;
}

Value emit_product(const Value& x, const Value& weight, std::int64_t contract,
                   const Tangent& bias) {
  if (bias) return matmul(x, weight, bias);
  return dot_general(x, weight, {{x.rank() - 1}, {contract}});
}

namespace {

// By node: somebody reads it in the new body.
std::vector<bool> needed_nodes(const Graph& g, const BodyRules& rules) {
  std::vector<bool> wanted(g.num_values(), false), needed(g.nodes().size(), false);
  for (ValueId v : g.outputs()) wanted[v.index] = true;
  for (std::size_t i = g.nodes().size(); i-- > 0;) {
    const Node& n = g.nodes()[i];
    for (ValueId v : n.outputs) needed[i] = needed[i] || wanted[v.index];
    if (!needed[i]) continue;
    const auto rule = rules.find(&n);
    for (ValueId v : rule == rules.end() ? n.inputs : rule->second.reads)
      wanted[v.index] = true;
  }
  return needed;
}

}  // namespace

Values rewrite_loop(const ScanView& scan, std::span<const Value> outer,
                    const BodyRules& rules) {
  const Graph& g = *scan.body;
  const std::vector<bool> needed = needed_nodes(g, rules);
  const auto body = [&](const Values& in) {
    Builder& b = *RecordingScope::innermost()->builder();
    Values env(g.num_values());
    for (std::size_t i = 0; i < g.inputs().size(); ++i)
      env[i] = i < scan.num_consts ? outer[i] : in[i - scan.num_consts];
    for (std::size_t i = 0; i < g.nodes().size(); ++i) {
      const Node& n = g.nodes()[i];
      if (!needed[i]) continue;
      if (const auto rule = rules.find(&n); rule != rules.end()) {
        rule->second.write(env);
        continue;
      }
      Values args;
      for (ValueId v : n.inputs) args.push_back(env[v.index]);
      const Values out = b.record(*n.op, args, n.attrs, n.loc);
      for (std::size_t k = 0; k < out.size(); ++k) env[n.outputs[k].index] = out[k];
    }
    Values results;
    for (ValueId v : g.outputs()) results.push_back(env[v.index]);
    return results;
  };
  const auto carry = outer.subspan(scan.num_consts, scan.num_carry);
  const auto xs = outer.subspan(scan.num_consts + scan.num_carry);
  ScanResult r =
      braintrace::scan(body, {carry.begin(), carry.end()}, {xs.begin(), xs.end()},
                       {.length = scan.length, .reverse = scan.reverse});
  r.carry.insert(r.carry.end(), r.ys.begin(), r.ys.end());
  return r.carry;
}

}  // namespace braintrace
