// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/jacobian.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {
namespace {

// Runs a program linear in its last input on all unit vectors of that input.
Value on_unit_vectors(const Graph& linear, std::vector<Value> residuals, const Type& t) {
  std::vector<BatchAxis> axes(residuals.size());
  residuals.push_back(unit_vectors(t));
  axes.push_back(0);
  const BatchResult r = batch_graph(linear, residuals, axes);
  return batch_in_front(r.values[0], r.axes[0], t.size());
}

// The linear program turned around: (residuals, cotangent) -> cotangent.
Graph turned(const Linearized& lin) {
  const auto builder = Builder::create();
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < lin.num_residuals; ++i)
    inputs.push_back(builder->input(lin.linear.type(lin.linear.inputs()[i])));
  inputs.emplace_back();
  std::vector<bool> marks(inputs.size(), false);
  marks.back() = true;
  const std::vector<Tangent> ct = {
      builder->input(lin.linear.type(lin.linear.outputs()[0]))};
  const Tangent in_ct = transpose_values(lin.linear, marks, inputs, ct).back();
  const Type t = lin.linear.type(lin.linear.inputs().back());
  return builder->finish(std::vector<Value>{materialize(in_ct, t)});
}

bool runs_forward(JacobianMode mode, const Type& in, const Type& out) {
  if (mode == JacobianMode::smaller) return in.size() <= out.size();
  return mode == JacobianMode::forward;
}

void check(const Graph& g, const JacobianOptions& o) {
  BT_REQUIRE(
      o.output < g.outputs().size() && o.input < g.inputs().size(),
      fmt::format("jacobian: output {} by input {} of a program with {} outputs and "
                  "{} inputs",
                  o.output, o.input, g.outputs().size(), g.inputs().size()));
  const Type &in = g.type(g.inputs()[o.input]), &out = g.type(g.outputs()[o.output]);
  BT_REQUIRE_KIND(
      is_float(in.dtype) && is_float(out.dtype), ErrorKind::type,
      fmt::format("jacobian: needs floats, got {} by {}", to_string(out), to_string(in)));
}

}  // namespace

Graph jacobian(const Graph& g, const JacobianOptions& o) {
  check(g, o);
  const Graph one = subgraph(g, g.inputs(), g.outputs().subspan(o.output, 1));
  const Type in = one.type(one.inputs()[o.input]), out = one.type(one.outputs()[0]);
  Shape shape = out.shape;
  shape.insert(shape.end(), in.shape.begin(), in.shape.end());

  const auto builder = Builder::create();
  std::vector<Value> inputs;
  for (ValueId v : one.inputs()) inputs.push_back(builder->input(one.type(v)));
  std::vector<bool> active(inputs.size(), false);
  active[o.input] = true;
  const Linearized lin = linearize(one, active);
  if (!lin.active_out[0])
    return builder->finish(std::vector<Value>{zeros_of({out.dtype, shape})});

  std::vector<Value> residuals = inline_graph(lin.primal, inputs);
  residuals.erase(residuals.begin());
  Value rows;
  if (runs_forward(o.mode, in, out)) {
    rows = on_unit_vectors(lin.linear, residuals, in);  // [in.size, *out.shape]
    rows = transpose(reshape(rows, {in.size(), out.size()}));
  } else {
    rows = on_unit_vectors(turned(lin), residuals, out);  // [out.size, *in.shape]
  }
  return builder->finish(std::vector<Value>{reshape(rows, shape)});
}

}  // namespace braintrace
