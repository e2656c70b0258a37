// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/program_text.h"

#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"
#include "braintrace/view/step_names.h"

namespace program_text_test {

using namespace braintrace;

namespace {

// h' = tanh(x W + h).
struct Cell : Module {
  ParamState W{{2, 3}, constant_init(0.5)};
  HiddenState h{{3}};
  Cell() {
    add("W", W);
    add("h", h);
  }
  Value update(Value x) override {
    const Value input = dot(x, W.value());
    h.set(tanh(input + h.value()));
    return sum(h.value());
  }
};

StepModel step_of(Module& m) {
  init_all_states(m);
  return trace_step(m, std::vector<Array>{zeros({2})});
}

}  // namespace

TEST_CASE("program text names arguments, states and outputs where they are defined") {
  Cell cell;
  CHECK(program_text(step_of(cell)) ==
        R"(in %0:f32[2]                         // x0
   %1:f32[2,3]                       // W
   %2:f32[3]                         // h
%3:f32[3] = dot_general {lhs_batch=[], lhs_contract=[0], rhs_batch=[], rhs_contract=[0]} %0 %1
%4:f32[3] = add %3 %2
%5:f32[3] = tanh %4                  // h at exit
%6:f32[] = reduce_sum {axes=[0]} %5  // y0
out %6 %1 %5
)");
}

TEST_CASE("identifiers are words of C++") {
  CHECK(view::identifier("rnn/W/weight[bias]") == "rnn_W_weight_bias");
  CHECK(view::identifier("0/h") == "s0_h");
  CHECK(view::identifier("") == "s");
}

TEST_CASE("step names cover every input and every written state") {
  Cell cell;
  const StepModel step = step_of(cell);
  const view::StepNames names = view::step_names(step);
  CHECK(names.entry.size() == step.program.inputs().size());
  CHECK(names.exit.at(step.find({"h"})->out[0]) == "h at exit");
  CHECK(names.exit.at(step.program.outputs()[0]) == "y0");
}

}  // namespace program_text_test
