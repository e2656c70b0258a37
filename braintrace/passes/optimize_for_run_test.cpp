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

namespace optimize_for_run_test {

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

// The gradient of a loss summed over a loop of kSteps steps: backpropagation through
// time.
Graph gradients_through_time(const StepModel& step) {
  const std::vector<bool> active = parameters_of(step);
  const auto b = Builder::create();
  Values in;
  for (std::size_t i = 0; i < active.size(); ++i) {
    Type t = step.program.type(step.program.inputs()[i]);
    if (i < step.num_args) t.shape.insert(t.shape.begin(), kSteps);
    in.push_back(b->input(t));
  }
  Values hidden;
  for (std::size_t i = step.num_args; i < active.size(); ++i)
    if (!active[i]) hidden.push_back(in[i]);
  const auto body = [&](const Values& v) {
    Values args = {v.back()};
    std::size_t next = 0;
    for (std::size_t i = 1; i < active.size(); ++i)
      args.push_back(active[i] ? in[i] : v[next++]);
    const Values out = inline_graph(step.program, args);
    Values result;
    for (std::size_t i = 1; i < active.size(); ++i)
      if (!active[i]) result.push_back(out[step.num_outputs + i - step.num_args]);
    result.push_back(sum(square(out[0])));
    return result;
  };
  const ScanResult r = scan(body, hidden, {in[0]});
  return grad(b->finish(Values{sum(r.ys[0])}), active);
}

struct ProductCount {
  int over_time_and_batch = 0, in_loops = 0, batched = 0;
};
void count(const Graph& g, bool in_loop, ProductCount& c) {
  for (const Node& n : g.nodes()) {
    if (n.attrs.has("body")) count(*n.attrs.graph("body"), true, c);
    const auto l =
        n.op->lower ? n.op->lower({g.types_of(n.inputs), g.types_of(n.outputs), n.attrs})
                    : Lowering{};
    const auto* gemm = std::get_if<lowering::Gemm>(&l);
    if (!gemm) continue;
    c.in_loops += in_loop;
    c.batched += !gemm->lhs_batch.empty();
    c.over_time_and_batch += !in_loop && gemm->lhs_contract == Ints{0, 1};
  }
}
ProductCount count(const Graph& g) {
  ProductCount c;
  count(g, false, c);
  return c;
}

}  // namespace

TEST_CASE("parameter gradients summed over steps take one product per weight") {
  const StepModel step = traced_gru();
  const Graph g = summed_gradients(step);
  const Graph h = optimize_for_run(g);
  check_same_values(g, h);
  const ProductCount c = count(h);
  CHECK(c.over_time_and_batch == 7);
  CHECK(c.batched == 0);
}

TEST_CASE("backpropagation through time takes one product per weight behind its loops") {
  const Graph g = gradients_through_time(traced_gru());
  const Graph h = optimize_for_run(g);
  check_same_values(g, h);
  const ProductCount c = count(h);
  CHECK(c.over_time_and_batch == 7);
  CHECK(c.batched == 0);
}

TEST_CASE("random programs keep their values through all passes") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Program p = random_graph(seed);
    CAPTURE(seed);
    CHECK_NOTHROW(check_same_values(p, optimize_for_run(p.graph)));
  }
}

TEST_CASE("a loop stacks nothing for a later one that does not need it in the end") {
  const Graph g = parse(R"(in %0:f64[4] %1:f64[3,4]
      %2:f64[4], %3:f64[3,4] = scan {body={
        in %0:f64[4] %1:f64[4]
        %2:f64[4] = mul %0 %1
        %3:f64[4] = tanh %2
        out %3 %3
      }, length=3, num_carry=1, num_consts=0, reverse=false} %0 %1
      %4:f64[4], %5:f64[3,4] = scan {body={
        in %0:f64[4] %1:f64[4] %2:f64[4]
        %3:f64[4] = mul %0 %1
        %4:f64[4] = exp %2
        out %3 %4
      }, length=3, num_carry=1, num_consts=0, reverse=false} %0 %1 %3
      out %2 %4)");
  const Graph h = optimize_for_run(g);
  for (const Node& n : h.nodes()) CHECK(n.outputs.size() == 1);
}

}  // namespace optimize_for_run_test
