// SPDX-License-Identifier: Apache-2.0
// Check 8 of the op harness: the planned executor against the interpreter, in f64 and
// f32.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/run/plan.h"
#include "braintrace/testing/check_op_impl.h"

namespace braintrace::testing::internal {
namespace {

// Ops that move or map single elements have one right answer; sums have an order.
bool is_exact(const Graph& g, const Node& n) {
  if (!n.op->lower) return false;
  const std::vector<Type> in = g.types_of(n.inputs), out = g.types_of(n.outputs);
  const Lowering l = n.op->lower({in, out, n.attrs});
  return std::holds_alternative<lowering::Constant>(l) ||
         std::holds_alternative<lowering::Elementwise>(l) ||
         std::holds_alternative<lowering::Broadcast>(l) ||
         std::holds_alternative<lowering::Reshape>(l) ||
         std::holds_alternative<lowering::Transpose>(l) ||
         std::holds_alternative<lowering::Slice>(l) ||
         std::holds_alternative<lowering::Pad>(l) ||
         std::holds_alternative<lowering::Concatenate>(l) ||
         std::holds_alternative<lowering::Gather>(l);
}

double compare(const Checked& k, const Graph& g, const std::vector<Array>& inputs,
               const std::string& what) {
  const bool exact = std::all_of(g.nodes().begin(), g.nodes().end(),
                                 [&](const Node& n) { return is_exact(g, n); });
  const std::vector<Array> want = eval_graph(g, inputs);
  std::vector<Array> got;
  Plan(g, {.threads = 1}).run(inputs, got);
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (exact && !(got[i] == want[i]))
      fail(k, fmt::format("{}, output {}: got {}, want {} bit for bit", what, i,
                          to_string(got[i]), to_string(want[i])));
    worst =
        std::max(worst, check_close(label(k, fmt::format("{}, output {}", what, i)),
                                    got[i], want[i], value_tolerance(got[i].dtype())));
  }
  return worst;
}

}  // namespace

void check_plan(Checked& k) {
  const double f64 = compare(k, k.graph, k.c.inputs, "planned against interpreted");
  std::vector<Array> inputs = k.c.inputs;
  std::vector<Type> types;
  for (Array& a : inputs) {
    if (a.dtype() == DType::f64) a = a.astype(DType::f32);
    types.push_back(type_of(a));
  }
  const Graph f32 = trace(k.c.build, types);
  note(k, "plan", std::max(f64, compare(k, f32, inputs, "planned in f32")));
}

}  // namespace braintrace::testing::internal
