// SPDX-License-Identifier: Apache-2.0
// Check 4 of the op harness: jvp against differences, vjp against jvp.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/testing/check_op_impl.h"
#include "braintrace/testing/finite_differences.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/jvp.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::testing::internal {
namespace {

std::string place(std::size_t input) {
  return input == kAllInputs ? "all inputs together" : fmt::format("input {}", input);
}

std::vector<Array> float_outputs(const std::vector<Array>& outputs) {
  std::vector<Array> floats;
  for (const Array& a : outputs)
    if (is_float(a.dtype())) floats.push_back(a);
  return floats;
}

std::vector<Array> random_like(const std::vector<Array>& arrays, std::uint64_t seed) {
  std::vector<Array> out;
  for (const Array& a : arrays)
    out.push_back(uniform(a.shape(), -1, 1, seed + out.size()).astype(a.dtype()));
  return out;
}

struct Direction {
  std::vector<bool> active;
  std::vector<Array> all;     // per input; zeros where not active
  std::vector<Array> chosen;  // of the active inputs
};

Direction direction(const Checked& k, const std::vector<bool>& active) {
  Direction d{active, {}, {}};
  for (std::size_t i = 0; i < active.size(); ++i) {
    const Array& x = k.c.inputs[i];
    const bool move = active[i];
    d.all.push_back(move ? uniform(x.shape(), -1, 1, 77 + i)
                         : Array(x.dtype(), x.shape()));
    if (move) d.chosen.push_back(d.all.back());
  }
  return d;
}

std::vector<Array> joined(std::vector<Array> a, const std::vector<Array>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Array> tail(const std::vector<Array>& a, std::size_t from) {
  return {a.begin() + static_cast<std::ptrdiff_t>(from), a.end()};
}

// Returns the tangents of the float outputs.
std::vector<Array> check_jvp(const Checked& k, const Direction& d, std::size_t input,
                             double& worst) {
  const Graph g = jvp(k.graph, d.active);
  verify(g);
  const std::vector<Array> out = eval_graph(g, joined(k.c.inputs, d.chosen));
  for (std::size_t o = 0; o < k.outputs.size(); ++o)
    check_close(label(k, fmt::format("primal of jvp of {}, output {}", place(input), o)),
                out[o], k.outputs[o], value_tolerance(out[o].dtype()));
  const std::vector<Array> tangents = tail(out, k.outputs.size());
  const auto run = [&](const std::vector<Array>& x) {
    return float_outputs(eval_graph(k.graph, x));
  };
  const std::vector<Array> want = directional_derivative(run, k.c.inputs, d.all);
  for (std::size_t o = 0; o < want.size(); ++o) {
    const auto what =
        fmt::format("jvp of {} against differences, float output {}", place(input), o);
    if (tangents[o].dtype() != DType::f64) continue;
    worst =
        std::max(worst, check_close(label(k, what), tangents[o], want[o], tol::f64_diff));
  }
  return tangents;
}

// <ct, J v> = <J^T ct, v>
double check_vjp(const Checked& k, const Direction& d, std::size_t input,
                 const std::vector<Array>& tangents) {
  const Graph g = vjp(k.graph, d.active);
  verify(g);
  const std::vector<Array> ct = random_like(tangents, 991);
  const std::vector<Array> out = eval_graph(g, joined(k.c.inputs, ct));
  const std::vector<Array> grads = tail(out, k.outputs.size());
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (type_of(grads[i]) != type_of(d.chosen[i]))
      fail(k, fmt::format("vjp of {}: cotangent {} has type {}", place(input), i,
                          to_string(type_of(grads[i]))));
  const Dot forward = dot_product(ct, tangents), reverse = dot_product(grads, d.chosen);
  const double scale =
      std::max({1.0, forward.magnitude, reverse.magnitude, std::abs(forward.value)});
  const double error = std::abs(forward.value - reverse.value) / scale;
  // f32 parts inside an f64 program (conversions) round the products.
  const bool single = std::any_of(tangents.begin(), tangents.end(),
                                  [](const Array& a) { return a.dtype() == DType::f32; });
  if (!(error <= (single ? tol::f32 : tol::f64)))
    fail(k, fmt::format("vjp of {}: <ct, J v> = {} but <J^T ct, v> = {}", place(input),
                        forward.value, reverse.value));
  return error;
}

void check_absent(const Checked& k) {
  std::vector<Value> in(k.c.inputs.begin(), k.c.inputs.end());
  std::vector<Tangent> tangents;
  for (const Array& a : k.c.inputs)
    tangents.push_back(is_float(a.dtype()) ? Tangent(Value(ones(a.shape(), a.dtype())))
                                           : std::nullopt);
  const JvpResult r = jvp_values(k.graph, in, tangents);
  for (std::size_t o = 0; o < r.tangents.size(); ++o)
    if (r.tangents[o])
      fail(k, fmt::format("output {} has a tangent, though the case says the op is not "
                          "differentiable",
                          o));
}

}  // namespace

void check_calculus(Checked& k) {
  if (!k.c.differentiable) return check_absent(k);
  const std::vector<bool> active = active_inputs(k.c);
  const auto count = std::count(active.begin(), active.end(), true);
  if (count == 0) return;
  double worst_jvp = 0, worst_vjp = 0;
  bool refused = false;
  const auto run = [&](const std::vector<bool>& which, std::size_t input) {
    const Direction d = direction(k, which);
    const std::vector<Array> tangents = check_jvp(k, d, input, worst_jvp);
    if (refused) return;
    try {
      worst_vjp = std::max(worst_vjp, check_vjp(k, d, input, tangents));
    } catch (const UserError& e) {
      if (k.c.reversible || e.kind() != ErrorKind::not_supported) throw;
      refused = true;
    }
  };
  for (std::size_t i = 0; i < active.size(); ++i) {
    std::vector<bool> one(active.size(), false);
    one[i] = active[i];
    if (active[i]) run(one, i);
  }
  if (count > 1) run(active, kAllInputs);
  note(k, "jvp", worst_jvp);
  if (k.c.reversible) return note(k, "vjp", worst_vjp);
  if (!refused) fail(k, "reverse mode was not refused, though the case says so");
  k.notes += "  vjp refused";
}

}  // namespace braintrace::testing::internal
