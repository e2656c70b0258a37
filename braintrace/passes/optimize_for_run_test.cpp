// SPDX-License-Identifier: Apache-2.0
// Learning programs after all passes: few products, each of them large.
#include "braintrace/passes/optimize_for_run.h"

#include <doctest/doctest.h>

#include "braintrace/model/step_model.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/pass_check.h"
#include "braintrace/transforms/vjp.h"
#include "braintrace/transforms/vmap.h"

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr std::int64_t kSteps = 8;

StepModel traced_gru() {
  const auto model =
      nn::build_model(R"({"kind": "two_layer_gru", "n_in": 3, "n_rec": 4, "n_out": 2})");
  init_all_states(*model, {.batch_size = 5, .dtype = DType::f64});
  return trace_step(*model, {Type{DType::f64, {5, 3}}});
}

std::vector<bool> parameters_of(const StepModel& step) {
  std::vector<bool> active(step.program.inputs().size(), false);
  for (const StepState& s : step.states)
    for (ValueId v : s.in) active[v.index] = s.kind == StateKind::param;
  return active;
}

// The step's parameter gradients for kSteps steps at once, summed over the steps.
Graph summed_gradients(const StepModel& step) {
  const std::vector<bool> active = parameters_of(step);
  const Graph pulled = vjp(step.program, active);
  VmapOptions options;
  for (std::size_t i = 0; i < pulled.inputs().size(); ++i)
    options.in_axes.push_back(i < active.size() && active[i] ? BatchAxis() : 0);
  const Graph lanes = vmap(pulled, kSteps, options);
  const auto b = Builder::create();
  Values in;
  for (const Type& t : lanes.input_types()) in.push_back(b->input(t));
  const Values out = inline_graph(lanes, in);
  Values sums;
  for (std::size_t i = step.program.outputs().size(); i < out.size(); ++i)
    sums.push_back(sum(out[i], {.axes = {0}}));
  return b->finish(sums);
}

}  // namespace

TEST_CASE("parameter gradients summed over steps take one product per weight") {
  const StepModel step = traced_gru();
  const Graph g = summed_gradients(step);
  const Graph h = optimize_for_run(g);
  check_same_values(g, h);
  int weights = 0, over_time_and_batch = 0, per_step = 0;
  for (const Type& t : h.output_types()) weights += t.rank() == 2;
  for (const Node& n : h.nodes()) {
    if (!n.attrs.has("lhs_contract")) continue;
    over_time_and_batch += n.attrs.ints("lhs_contract") == Ints{0, 1};
    per_step += !n.attrs.ints("lhs_batch").empty();
  }
  CHECK(weights == 7);
  CHECK(over_time_and_batch == weights);
  CHECK(per_step == 0);
}

TEST_CASE("random programs keep their values through all passes") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Program p = random_graph(seed);
    CAPTURE(seed);
    CHECK_NOTHROW(check_same_values(p, optimize_for_run(p.graph)));
  }
}
