// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/bptt.h"

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/passes/count_loops.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::testing {
namespace {

// Names and kinds of all state leaves, in program order.
void name_leaves(Unrolled& u) {
  for (const StepState& s : u.step.states) {
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      const std::string& key = s.state->spec(i).key;
      u.leaves.push_back(to_slashes(key.empty() ? s.path : s.path.child(key)));
      u.is_parameter.push_back(s.kind == StateKind::param);
    }
  }
}

Values inputs_of(Builder& b, const std::vector<Array>& arrays) {
  Values values;
  for (const Array& a : arrays) values.push_back(b.input(type_of(a)));
  return values;
}

}  // namespace

Unrolled unroll(Module& m, const std::vector<StepInputs>& sequence,
                const StepLoss& loss) {
  BT_REQUIRE(!sequence.empty(), "unroll: the sequence must have at least one step");
  Unrolled u;
  u.step = trace_step(m, sequence[0]);
  name_leaves(u);
  u.inputs = read_states(u.step);

  const Graph step = count_loops(u.step.program);  // reverse mode crosses no while loop
  const auto builder = Builder::create();
  Values leaves = inputs_of(*builder, u.inputs);
  Values outputs = {Value()};  // the total loss takes the first place
  Tangent total;
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    Values args = inputs_of(*builder, sequence[t]);
    u.inputs.insert(u.inputs.end(), sequence[t].begin(), sequence[t].end());
    args.insert(args.end(), leaves.begin(), leaves.end());
    const Values results = inline_graph(step, args);
    const auto split = results.begin() + static_cast<std::ptrdiff_t>(u.step.num_outputs);
    leaves.assign(split, results.end());
    const Value part = loss(t, Values(results.begin(), split));
    total = total ? *total + part : part;
    outputs.insert(outputs.end(), results.begin(), results.end());
  }
  outputs[0] = *total;
  u.program = builder->finish(outputs);
  return u;
}

BpttResult bptt(Module& m, const std::vector<StepInputs>& sequence,
                const StepLoss& loss) {
  const Unrolled u = unroll(m, sequence, loss);
  std::vector<bool> active(u.inputs.size(), false);
  for (std::size_t i = 0; i < u.leaves.size(); ++i)
    active[i] = u.is_parameter[i] && is_float(u.inputs[i].dtype());
  const std::vector<Array> results =
      eval_graph(value_and_grad(u.program, active), u.inputs);

  BpttResult r;
  r.loss = results[0].item();
  std::size_t next = 1;
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    r.outputs.emplace_back();
    for (std::size_t i = 0; i < u.step.num_outputs; ++i)
      r.outputs.back().push_back(results[next++]);
    r.states.emplace_back();
    for (std::size_t i = 0; i < u.leaves.size(); ++i, ++next)
      if (!u.is_parameter[i]) r.states.back().emplace(u.leaves[i], results[next]);
  }
  for (std::size_t i = 0; i < u.leaves.size(); ++i)
    if (active[i]) r.grads.emplace(u.leaves[i], results[next++]);
  return r;
}

BpttResult forward(Module& m, const std::vector<StepInputs>& sequence) {
  BT_REQUIRE(!sequence.empty(), "forward: the sequence must have at least one step");
  Unrolled u;
  u.step = trace_step(m, sequence[0]);
  name_leaves(u);
  std::vector<Array> leaves = read_states(u.step);
  BpttResult r;
  for (const StepInputs& args : sequence) {
    std::vector<Array> in = args;
    in.insert(in.end(), leaves.begin(), leaves.end());
    const std::vector<Array> out = eval_graph(u.step.program, in);
    const auto split = out.begin() + static_cast<std::ptrdiff_t>(u.step.num_outputs);
    r.outputs.emplace_back(out.begin(), split);
    leaves.assign(split, out.end());
    r.states.emplace_back();
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (!u.is_parameter[i]) r.states.back().emplace(u.leaves[i], leaves[i]);
  }
  return r;
}

std::vector<StepInputs> steps_of(const Array& xs) {
  BT_REQUIRE(xs.rank() >= 1, "steps_of: needs a leading time axis, got a scalar");
  const Shape rest(xs.shape().begin() + 1, xs.shape().end());
  Shape size = xs.shape();
  size[0] = 1;
  std::vector<StepInputs> steps;
  for (std::int64_t t = 0; t < xs.shape()[0]; ++t) {
    Ints start(xs.shape().size(), 0);
    start[0] = t;
    const Array row = xs.sliced(start, size, Ints(start.size(), 1));
    steps.push_back({row.contiguous().reshaped(rest)});
  }
  return steps;
}

}  // namespace braintrace::testing
