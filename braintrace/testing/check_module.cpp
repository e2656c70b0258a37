// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/check_module.h"

#include <fmt/format.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::testing {
namespace {

constexpr double step_size = 1e-6;

std::vector<StepInputs> in_double(std::vector<StepInputs> sequence) {
  for (StepInputs& inputs : sequence)
    for (Array& a : inputs)
      if (is_float(a.dtype())) a = a.astype(DType::f64);
  return sequence;
}

// Sum of all float outputs, each entry with its own fixed weight.
Value projection(std::size_t t, const Values& outputs) {
  Value total = scalar(0, DType::f64);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_float(outputs[i].dtype())) continue;
    const Array weights = random_uniform(fold_in(rng_key(7), 100 * t + i),
                                         outputs[i].shape(), 0.5, 1.5, DType::f64);
    total = total + sum(outputs[i] * weights);
  }
  return total;
}

void check_eager(Module& m, const Unrolled& u, const std::vector<StepInputs>& sequence) {
  const std::vector<Array> traced = eval_graph(u.program, u.inputs);
  const std::vector<Array> start = read_states(u.step);
  std::size_t next = 1;
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    const Values args(sequence[t].begin(), sequence[t].end());
    for (const Value& y : m.update_all(args))
      check_close(fmt::format("eager output at step {}", t), y.array(), traced[next++],
                  tol::f64);
    const std::vector<Array> states = read_states(u.step);
    for (std::size_t i = 0; i < states.size(); ++i)
      check_close(fmt::format("eager state {} at step {}", u.leaves[i], t), states[i],
                  traced[next++], tol::f64);
  }
  write_states(u.step, start);
}

double total_at(const Unrolled& u, std::vector<Array> inputs, std::size_t which,
                std::int64_t position, double shift) {
  inputs[which].mutable_data<double>()[position] += shift;
  return eval_graph(u.program, inputs)[0].item();
}

void check_input(const Unrolled& u, std::size_t which, const Array& gradient) {
  const std::string what =
      which < u.leaves.size()
          ? "gradient by " + u.leaves[which]
          : fmt::format("gradient by argument {}", which - u.leaves.size());
  Array numeric(DType::f64, gradient.shape());
  for (std::int64_t i = 0; i < gradient.size(); ++i) {
    const double above = total_at(u, u.inputs, which, i, step_size);
    const double below = total_at(u, u.inputs, which, i, -step_size);
    numeric.mutable_data<double>()[i] = (above - below) / (2 * step_size);
  }
  check_close(what, gradient, numeric, tol::f64_diff);
}

}  // namespace

void check_module(Module& m, const std::vector<StepInputs>& sequence,
                  const InitOptions& init) {
  InitOptions options = init;
  options.dtype = DType::f64;
  init_all_states(m, options);
  const std::vector<StepInputs> steps = in_double(sequence);
  const Unrolled u = unroll(m, steps, projection);
  check_eager(m, u, steps);

  const std::vector<bool> active = float_inputs(u.program);
  const std::vector<Array> results =
      eval_graph(value_and_grad(u.program, active), u.inputs);
  std::size_t next = u.program.outputs().size();
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) check_input(u, i, results[next++]);
}

void check_module(Module& m, const Array& x) { check_module(m, {StepInputs{x}}); }

}  // namespace braintrace::testing
