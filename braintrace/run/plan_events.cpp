// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "braintrace/ir/op_def.h"
#include "braintrace/run/plan_events_impl.h"

namespace braintrace::plan {
namespace {

using Flags = std::vector<bool>;

// Zero wherever an input is: windows, products, joins (in part), conversions.
bool keeps_zeros(const Lowering& l) {
  if (const auto* e = std::get_if<lowering::Elementwise>(&l))
    return e->op == MicroOp::mul || e->op == MicroOp::convert || e->op == MicroOp::copy ||
           e->op == MicroOp::neg;
  return std::holds_alternative<lowering::Reshape>(l) ||
         std::holds_alternative<lowering::Transpose>(l) ||
         std::holds_alternative<lowering::Slice>(l) ||
         std::holds_alternative<lowering::Concatenate>(l);
}

void mark_loop_outputs(const Node& n, const lowering::Scan& l, const Flags& inputs,
                       Flags& found) {
  const Flags body = spiking_values(*l.body, spiking_in_body(l, inputs));
  for (std::size_t i = 0; i < n.outputs.size(); ++i)
    found[n.outputs[i].index] = body[l.body->outputs()[i].index];
}

}  // namespace

Flags spiking_values(const Graph& g, const Flags& inputs) {
  Flags found(g.num_values(), false);
  for (std::size_t i = 0; i < inputs.size(); ++i) found[g.inputs()[i].index] = inputs[i];
  for (const Node& n : g.nodes()) {
    if (!n.op->lower) continue;
    Flags in;
    for (ValueId v : n.inputs) in.push_back(found[v.index]);
    const std::vector<Type> in_types = g.types_of(n.inputs);
    const std::vector<Type> out_types = g.types_of(n.outputs);
    const Lowering l = n.op->lower({in_types, out_types, n.attrs});
    if (const auto* scan = std::get_if<lowering::Scan>(&l)) {
      mark_loop_outputs(n, *scan, in, found);
    } else if (keeps_zeros(l)) {
      const bool from_boolean =
          in_types[0].dtype == DType::boolean && out_types[0].dtype != DType::boolean;
      found[n.outputs[0].index] =
          from_boolean || std::find(in.begin(), in.end(), true) != in.end();
    }
  }
  return found;
}

Flags spiking_in_body(const lowering::Scan& l, const Flags& inputs) {
  Flags flags = inputs;
  // What a turn hands on counts, not what the first one is given.
  for (std::size_t i = 0; i < l.num_carry; ++i) flags[l.num_consts + i] = false;
  const Flags body = spiking_values(*l.body, flags);
  for (std::size_t i = 0; i < l.num_carry; ++i)
    flags[l.num_consts + i] = body[l.body->outputs()[i].index];
  return flags;
}

}  // namespace braintrace::plan
