// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine of differentiation, driven by OpDef slots only. It lives here because the
// rules of ops with sub-graphs need it; transforms/ offers it as Graph -> Graph.
//   reverse mode = jvp, split into a primal and a linear program, transpose of the latter
#include <span>
#include <vector>

#include "braintrace/ir/op_def.h"

namespace braintrace {

// Zeros of the value's type, concrete.
Value zeros_of(const Type& t);
// The tangent, or zeros of the given type where it is absent.
Value materialize(const Tangent& t, const Type& type);

struct JvpResult {
  std::vector<Value> outs;
  std::vector<Tangent> tangents;  // one per output; absent stays absent
};
// One tangent per input, of the input's type. UserError not_implemented names an op that
// has no derivative.
JvpResult jvp_node(const Site& s, std::span<const Tangent> tangents);
JvpResult jvp_values(const Graph& g, std::span<const Value> inputs,
                     std::span<const Tangent> tangents);

// g at a point, split in two:
//   primal: inputs -> outputs, residuals
//   linear: residuals, tangents of the active inputs -> tangents of the active outputs
// An inactive output does not depend on the active inputs. A residual may be an input of
// primal itself; no residual is a literal.
struct Linearized {
  Graph primal, linear;
  std::vector<bool> active_in, active_out;
  std::size_t num_residuals = 0;
};
Linearized linearize(const Graph& g, const std::vector<bool>& active);

// g must be linear in the marked inputs; unmarked inputs take their values from `inputs`
// (marked entries are not read). Cotangents: one per output. Result: one per input,
// absent for unmarked inputs and where nothing flows.
std::vector<Tangent> transpose_values(const Graph& g, const std::vector<bool>& linear,
                                      std::span<const Value> inputs,
                                      std::span<const Tangent> cotangents);

struct VjpResult {
  std::vector<Value> outs;
  std::vector<Tangent> cotangents;  // one per input
};
// Linearized at `inputs` and transposed. `cotangents`: one per output, may be absent.
VjpResult vjp_values(const Graph& g, const std::vector<bool>& active,
                     std::span<const Value> inputs, std::span<const Tangent> cotangents);

// Marks the inputs that can have a tangent (f32, f64).
std::vector<bool> float_inputs(const Graph& g);

}  // namespace braintrace
