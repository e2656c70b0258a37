// SPDX-License-Identifier: Apache-2.0
// The demo: write one step of a recurrent model, run it, see it as a program, and check
// the gradient that is derived from that program.
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "braintrace/array/rng.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/print.h"
#include "braintrace/model/module.h"
#include "braintrace/model/step_model.h"
#include "braintrace/ops/ops.h"
#include "braintrace/transforms/vjp.h"

using namespace braintrace;

namespace {

Initializer normal_init(double scale) {
  return [scale](RngKey key, const Shape& shape, DType dtype) {
    return (random_normal(key, shape, dtype) * scale).array();
  };
}

// h' = tanh(x W + h U + b),  y = h' V. State: h.
class SmallRnn : public Module {
 public:
  SmallRnn(std::int64_t inputs, std::int64_t units, std::int64_t outputs)
      : W({inputs, units}, normal_init(0.5)),
        U({units, units}, normal_init(0.5)),
        b({units}, constant_init(0.1)),
        V({units, outputs}, normal_init(0.5)),
        h({units}) {
    add("W", W);
    add("U", U);
    add("b", b);
    add("V", V);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(tanh(matmul(x, W.value()) + matmul(h.value(), U.value()) + b.value()));
    return matmul(h.value(), V.value());
  }

 private:
  ParamState W, U, b, V;
  HiddenState h;
};

void heading(const std::string& text) {
  fmt::print("\n{}\n{}\n", text, std::string(text.size(), '-'));
}

std::string row(const Array& a) {
  std::string text;
  for (double v : a.to_doubles()) text += fmt::format(" {:8.4f}", v);
  return text;
}

// loss = mean (y - target)^2 of one step, as a program of the step's inputs.
Graph loss_program(const StepModel& step, const Array& target) {
  const auto builder = Builder::create();
  std::vector<Value> inputs;
  for (const Type& t : step.program.input_types()) inputs.push_back(builder->input(t));
  const Value y = inline_graph(step.program, inputs)[0];
  return builder->finish({{mean(square(y - target))}});
}

// Largest difference between a gradient and central differences of the loss.
double worst_error(const Graph& loss, std::vector<Array> inputs, std::size_t which,
                   const Array& gradient) {
  const double step = 1e-6;
  double worst = 0;
  for (std::int64_t i = 0; i < gradient.size(); ++i) {
    const auto loss_at = [&](double shift) {
      std::vector<Array> moved = inputs;
      moved[which].mutable_data<double>()[i] += shift;
      return eval_graph(loss, moved)[0].item();
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    worst = std::max(worst, std::abs(slope - gradient.at(i)));
  }
  return worst;
}

int run() {
  SmallRnn model(3, 4, 2);
  init_all_states(model, {.seed = 7, .dtype = DType::f64});
  const Array x = array({1, -0.5, 0.25}, DType::f64);

  heading("1. The model is ordinary code: three steps on arrays");
  for (int t = 0; t < 3; ++t) fmt::print("y[{}] ={}\n", t, row(model(x).array()));

  heading("2. The same code, traced: one step as a program");
  const StepModel step = trace_step(model, std::vector<Array>{x});
  fmt::print("{}\nstates (value at entry -> at exit):\n{}", print(step.program),
             describe_states(step));

  heading("3. The gradient of a loss of that step, derived from the program");
  const Graph loss = loss_program(step, array({0.5, -0.5}, DType::f64));
  const Graph derived =
      value_and_grad(loss, std::vector<bool>(loss.inputs().size(), true));
  std::vector<Array> inputs = {x};
  for (const Array& a : read_states(step)) inputs.push_back(a);
  const std::vector<Array> results = eval_graph(derived, inputs);
  fmt::print("loss program: {} nodes; with gradient: {} nodes; loss = {:.6f}\n",
             loss.nodes().size(), derived.nodes().size(), results[0].item());

  double worst = 0;
  std::size_t at = 1;  // after x
  for (const StepState& s : step.states) {
    const Array& gradient = results[1 + at];
    const double error = worst_error(loss, inputs, at, gradient);
    worst = std::max(worst, error);
    fmt::print(
        "  d loss / d {:<8} {:<10} |error against central differences| <= {:.1e}\n",
        to_slashes(s.path), to_string(type_of(gradient)), error);
    ++at;
  }
  const bool ok = worst < 1e-7;
  fmt::print("\n{}\n", ok ? "All gradients agree." : "GRADIENTS DO NOT AGREE.");
  return ok ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& e) {
    fmt::print(stderr, "demo: {}\n", e.what());
    return 1;
  }
}
