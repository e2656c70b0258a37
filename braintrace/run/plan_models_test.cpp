// SPDX-License-Identifier: Apache-2.0
// Plans of every recorded model: one step, and the gradient of a scan over its steps.
#include <filesystem>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/model/step_model.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/ops.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/run/plan.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/golden_case.h"
#include "braintrace/train/csv.h"
#include "braintrace/transforms/vjp.h"

namespace plan_models_test {

using namespace braintrace;

namespace {

struct Program {
  Graph graph;
  std::vector<Array> inputs;
};

Array first_step(const Array& xs) {
  Shape size = xs.shape();
  size[0] = 1;
  const Shape shape(size.begin() + 1, size.end());
  return xs.sliced(Ints(size.size(), 0), size, Ints(size.size(), 1)).reshaped(shape);
}

// (xs, leaves) -> gradients of the sum of all squared outputs; leaves that the step
// writes are carried.
Program gradient_over_time(const StepModel& step, const Array& xs,
                           const std::vector<Array>& leaves) {
  std::vector<bool> written;
  for (const StepState& s : step.states)
    written.insert(written.end(), s.in.size(), s.written);
  const auto builder = Builder::create();
  const Value x = builder->input(type_of(xs));
  Values states, carried;
  for (const Array& a : leaves) states.push_back(builder->input(type_of(a)));
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (written[i]) carried.push_back(states[i]);
  const auto body = [&](const Values& in) {
    Values args = {in.back()};
    std::size_t next = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      args.push_back(written[i] ? in[next++] : states[i]);
    const Values out = inline_graph(step.program, args);
    Values results;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (written[i]) results.push_back(out[step.num_outputs + i]);
    results.push_back(sum(square(out[0])));
    return results;
  };
  const ScanResult r = scan(body, carried, {x});
  const Graph loss = builder->finish(Values{sum(r.ys[0])});
  std::vector<Array> inputs = {xs};
  inputs.insert(inputs.end(), leaves.begin(), leaves.end());
  return {grad(loss), inputs};
}

void check_plan(const std::string& what, const Program& p) {
  const std::vector<Array> want = interpret(p.graph, p.inputs);
  Plan plan(p.graph);
  std::vector<Array> got;
  for (int repeat = 0; repeat < 2; ++repeat) {
    plan.run(p.inputs, got);
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      CHECK_MESSAGE(testing::worst_error(got[i], want[i]).error <=
                        testing::value_tolerance(want[i].dtype()),
                    what);
    }
  }
}

}  // namespace

TEST_CASE("plans of every recorded model give the interpreter's values and gradients") {
  std::size_t models = 0, gradients = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens")) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().filename().string();
    const std::string text = read_file(entry.path().string());
    if (testing::classify_golden(text) != testing::GoldenKind::golden_case) continue;
    INFO(name);
    const auto c = testing::parse_golden(name, text);
    const auto model = nn::build_model(c.text);
    init_all_states(*model, {.batch_size = c.batch, .dtype = DType::f64});
    load_state_dict(*model, c.weights);
    const Array xs = is_float(c.inputs.dtype()) ? c.inputs.astype(DType::f64) : c.inputs;
    const StepModel step = trace_step(*model, std::vector{first_step(xs)});
    const std::vector<Array> leaves = read_states(step);
    std::vector<Array> inputs = {first_step(xs)};
    inputs.insert(inputs.end(), leaves.begin(), leaves.end());
    check_plan("step", {step.program, inputs});
    ++models;
    try {
      check_plan("gradient", gradient_over_time(step, xs, leaves));
      ++gradients;
    } catch (const UserError& e) {  // a loop of unknown length has no reverse mode
      CHECK(e.kind() == ErrorKind::not_supported);
    }
  }
  CHECK(models > 80);
  CHECK(gradients > 80);
}

}  // namespace plan_models_test
