// SPDX-License-Identifier: Apache-2.0
// A loss of one step as the loss of a window.
#include "braintrace/algo/window_program.h"

namespace braintrace {

LossProgram windowed(const LossProgram& step, std::int64_t steps) {
  BT_INVARIANT(step.perturbations.empty());
  const auto builder = Builder::create();
  const std::vector<Type> types = step.graph.input_types();
  Values args, leaves, init;
  for (std::size_t i = 0; i < step.num_args; ++i) {
    Type t = types[i];
    t.shape.insert(t.shape.begin(), steps);
    args.push_back(builder->input(t));
  }
  for (std::size_t k = 0; k < step.leaves.size(); ++k) {
    leaves.push_back(builder->input(types[step.num_args + k]));
    if (step.leaves[k].exit) init.push_back(leaves.back());
  }
  const std::size_t head = step.first_result() + step.num_results;
  const ScanResult r = scan(
      [&](const Values& in) {
        Values a(in.begin() + static_cast<std::ptrdiff_t>(init.size()), in.end());
        std::size_t c = 0;
        for (std::size_t k = 0; k < leaves.size(); ++k)
          a.push_back(step.leaves[k].exit ? in[c++] : leaves[k]);
        const Values out = inline_graph(step.graph, a);
        Values result;
        for (const ProgramLeaf& leaf : step.leaves)
          if (leaf.exit) result.push_back(out[*leaf.exit]);
        result.insert(result.end(), out.begin(),
                      out.begin() + static_cast<std::ptrdiff_t>(head));
        for (const ExposedRead& read : step.reads) result.push_back(out[read.output]);
        return result;
      },
      init, args, {.length = steps});
  LossProgram p = step;
  Values outputs(r.ys.begin(), r.ys.begin() + static_cast<std::ptrdiff_t>(head));
  std::size_t c = 0;
  for (ProgramLeaf& leaf : p.leaves) {
    if (!leaf.exit) continue;
    leaf.exit = outputs.size();
    outputs.push_back(r.carry[c++]);
  }
  for (std::size_t i = 0; i < p.reads.size(); ++i) {
    p.reads[i].output = outputs.size();
    p.reads[i].has_time = true;
    outputs.push_back(r.ys[head + i]);
  }
  p.graph = builder->finish(outputs);
  return p;
}

double bytes_per_step(const LossProgram& step) {
  double bytes = 0;
  for (const Node& n : step.graph.nodes())
    for (ValueId v : n.outputs) {
      const Type& t = step.graph.type(v);
      bytes += static_cast<double>(num_elements(t.shape)) *
               static_cast<double>(size_of(t.dtype));
    }
  return bytes;
}

}  // namespace braintrace
