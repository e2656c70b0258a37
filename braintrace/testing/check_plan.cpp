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

// What running gives, or the text of the refusal.
struct Ran {
  std::vector<Array> outputs = {};
  std::optional<std::string> refusal = {};
};

Ran run_or_refuse(const std::function<std::vector<Array>()>& run) {
  try {
    return {run(), {}};
  } catch (const UserError& e) {
    return {{}, e.what()};
  }
}

}  // namespace

std::optional<double> check_planned(const Checked& k, const Graph& g,
                                    const std::vector<Array>& inputs,
                                    const std::string& what) {
  const bool exact = std::all_of(g.nodes().begin(), g.nodes().end(),
                                 [&](const Node& n) { return is_exact(g, n); });
  const Ran want = run_or_refuse([&] { return eval_graph(g, inputs); });
  const Ran got = run_or_refuse([&] {
    std::vector<Array> out;
    Plan(g, {.threads = 1}).run(inputs, out);
    return out;
  });
  if (want.refusal.has_value() != got.refusal.has_value())
    fail(k,
         fmt::format("{}: only the {} refuses: {}", what, want.refusal ? "eval" : "plan",
                     want.refusal ? *want.refusal : *got.refusal));
  if (want.refusal) return std::nullopt;
  double worst = 0;
  for (std::size_t i = 0; i < want.outputs.size(); ++i) {
    const Array &a = got.outputs[i], &b = want.outputs[i];
    if (exact && !(a == b))
      fail(k, fmt::format("{}, output {}: got {}, want {} bit for bit", what, i,
                          to_string(a), to_string(b)));
    worst = std::max(worst, check_close(label(k, fmt::format("{}, output {}", what, i)),
                                        a, b, value_tolerance(a.dtype())));
  }
  return worst;
}

void check_plan(Checked& k) {
  const auto f64 = check_planned(k, k.graph, k.c.inputs, "planned against interpreted");
  const std::vector<Array> inputs = converted(k.c.inputs, DType::f64, DType::f32);
  const Graph single = trace(k.c.build, types_of(inputs));
  const auto f32 = check_planned(k, single, inputs, "planned in f32");
  if (!f64 || !f32) fail(k, "running is refused");
  note(k, "plan", std::max(*f64, *f32));
}

}  // namespace braintrace::testing::internal
