// SPDX-License-Identifier: Apache-2.0
// cond as straight-line code.
#include <algorithm>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_rewrite.h"

namespace braintrace {
namespace {

bool is_safe(const Graph& g);

// An integer input that the position map leaves out is an index (keys are never invalid).
bool reads_by_index(const Graph& g, const Node& n) {
  if (has(n.op->traits, Trait::random)) return false;
  const std::vector<Type> in = g.types_of(n.inputs), out = g.types_of(n.outputs);
  const PositionMap map = positions_of(*n.op, {in, out, n.attrs});
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool flows = std::any_of(map.flow[i].begin(), map.flow[i].end(),
                                   [](const InputFlow& f) { return f.reaches; });
    if (in[i].dtype == DType::i32 && !flows) return true;
  }
  return false;
}

bool is_safe(const Graph& g, const Node& n) {
  if (reads_by_index(g, n)) return false;
  // A loop that nobody can unroll, turn into selection or inline may never end.
  if (has(n.op->traits, Trait::region) && !n.op->unroll && !n.op->to_select &&
      !n.op->inline_body)
    return false;
  for (const auto& [name, value] : n.attrs.entries()) {
    const auto* sub = std::get_if<GraphPtr>(&value);
    if (sub && !is_safe(**sub)) return false;
  }
  return true;
}

bool is_safe(const Graph& g) {
  return std::all_of(g.nodes().begin(), g.nodes().end(),
                     [&](const Node& n) { return is_safe(g, n); });
}

Value safe_value(DType d) { return scalar(is_float(d) ? 1 : 0, d); }

Values run_branch(const Graph& g, const Value& chosen, std::span<const Value> operands) {
  Values in;
  for (const Value& v : operands) in.push_back(select(chosen, v, safe_value(v.dtype())));
  return inline_graph(g, in);
}

}  // namespace

Rewrite cond_to_select(const Site& s) {
  const Graph& yes = *s.attrs.graph("true_branch");
  const Graph& no = *s.attrs.graph("false_branch");
  if (!is_safe(yes) || !is_safe(no)) return std::nullopt;
  const Value predicate = s.in[0];
  const Values a = run_branch(yes, predicate, s.in.subspan(1));
  const Values b = run_branch(no, logical_not(predicate), s.in.subspan(1));
  std::vector<Value> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(select(predicate, a[i], b[i]));
  return out;
}

}  // namespace braintrace
