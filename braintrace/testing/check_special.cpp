// SPDX-License-Identifier: Apache-2.0
// Check 9 of the op harness: numbers that are none, and integers in place of floats.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "braintrace/array/rng.h"
#include "braintrace/testing/check_op_impl.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::testing::internal {
namespace {

constexpr int kRounds = 8;
constexpr std::int64_t kProbes = 16;  // places tried per input

// No subnormal numbers: a plan takes them for zero, the interpreter does not. The zeros
// come last: see `Choices`.
constexpr double kSpecial[] = {kNan, kInf, -kInf, 1, -1, 0.5, -0.0, 0.0};

// Products may leave out terms with a factor 0, or not, and then NaN and infinities of
// the other factor show or not (docs/plan.md). So products get no zeros, and kernels that
// meet zeros of the padding keep their numbers.
struct Choices {
  std::size_t count = std::size(kSpecial);
  bool only_first = false;  // input
};

Choices choices_for(const Graph& g) {
  Choices c;
  for (const Node& n : g.nodes()) {
    if (!n.op->lower) continue;
    const std::vector<Type> in = g.types_of(n.inputs), out = g.types_of(n.outputs);
    const Lowering l = n.op->lower({in, out, n.attrs});
    c.only_first = c.only_first || std::holds_alternative<lowering::Conv>(l);
    if (c.only_first || std::holds_alternative<lowering::Gemm>(l) ||
        std::holds_alternative<lowering::Sparse>(l) ||
        std::holds_alternative<lowering::SparseOuter>(l))
      c.count = std::size(kSpecial) - 2;
  }
  return c;
}

bool any_float(const std::vector<Array>& arrays) {
  for (const Array& a : arrays)
    if (is_float(a.dtype())) return true;
  return false;
}

// Odd rounds: one special number in each input; even ones: nothing else.
Array with_special(const Array& a, std::uint64_t input, std::uint64_t round,
                   std::size_t choices) {
  if (a.dtype() != DType::f64 || a.size() == 0) return a;
  const RngKey key = rng_key(1000 * input + round);
  Array out = a.contiguous();
  double* p = out.mutable_data<double>();
  const auto n = static_cast<std::uint64_t>(a.size());
  const auto draw = [&](std::uint64_t i, std::uint64_t below) {
    return static_cast<std::uint64_t>(uniform_at(key, i) * static_cast<double>(below));
  };
  const auto special = [&](std::uint64_t i) { return kSpecial[draw(i, choices)]; };
  if (round % 2 == 1) {
    p[draw(0, n)] = special(1);
  } else {
    for (std::uint64_t i = 0; i < n; ++i) p[i] = special(i);
  }
  return out;
}

void check_special_values(Checked& k) {
  const Graph single =
      trace(k.c.build, types_of(converted(k.c.inputs, DType::f64, DType::f32)));
  const Choices choices = choices_for(k.graph);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    std::vector<Array> inputs;
    for (const Array& a : k.c.inputs)
      inputs.push_back(choices.only_first && !inputs.empty()
                           ? a
                           : with_special(a, inputs.size(), round, choices.count));
    check_planned(k, k.graph, inputs, "special numbers");
    check_planned(k, single, converted(inputs, DType::f64, DType::f32),
                  "special numbers in f32");
    met(k, "special");
  }
}

Array with_number(const Array& a, std::int64_t at, double value) {
  Array b = a.contiguous();
  visit_dtype(b.dtype(), [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>)
      b.mutable_data<T>()[at] = static_cast<T>(value);
  });
  return b;
}

// What a small change of a number reaches, NaN in its place reaches as well.
void check_nan_reaches(const Checked& k, const Use& u, std::size_t i, std::int64_t at) {
  const auto run = [&](double value) {
    std::vector<Array> in = u.in;
    in[i] = with_number(in[i], at, value);
    return eval_op(*u.node->op, in, u.node->attrs);
  };
  const std::vector<Array> moved = run(u.in[i].at(at) + 1e-3), nan = run(kNan);
  for (std::size_t o = 0; o < u.out.size(); ++o) {
    if (!is_float(u.out[o].dtype())) continue;
    for (std::int64_t q = 0; q < u.out[o].size(); ++q)
      if (moved[o].at(q) != u.out[o].at(q) && !std::isnan(nan[o].at(q)))
        fail(k, fmt::format("NaN in input {} at {} gives {} in output {} at {}", i,
                            to_string(unravel(at, u.in[i].shape())), nan[o].at(q), o,
                            to_string(unravel(q, u.out[o].shape()))));
  }
}

// Integers near three times the floats; booleans where these are not 0.
std::vector<Array> as_integers(const std::vector<Array>& inputs, DType dtype,
                               std::size_t only) {
  std::vector<Array> out = inputs;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!is_float(out[i].dtype()) || (only != kAllInputs && only != i)) continue;
    std::vector<double> v = out[i].to_doubles();
    for (double& x : v) x = std::round(3 * x);
    out[i] = array(out[i].shape(), v, DType::i32).astype(dtype);
  }
  return out;
}

void check_integers_of(Checked& k, DType dtype, std::size_t only) {
  const std::vector<Array> inputs = as_integers(k.c.inputs, dtype, only);
  const std::string what = only == kAllInputs
                               ? fmt::format("{} inputs", to_string(dtype))
                               : fmt::format("{} as input {}", to_string(dtype), only);
  std::vector<Array> got;
  met(k, "integers");
  try {
    got = run_eagerly(k.c, inputs);
  } catch (const UserError& e) {
    if (std::string_view(e.what()).find(to_string(dtype)) == std::string_view::npos)
      fail(k, what + " are refused without saying what was found: " + e.what());
    return;
  } catch (const InternalError& e) {
    fail(k, what + ": " + e.what());
  }
  check_planned(k, trace(k.c.build, types_of(inputs)), inputs, what);
  std::vector<Array> floats = inputs;
  for (std::size_t i = 0; i < floats.size(); ++i)
    floats[i] = floats[i].astype(k.c.inputs[i].dtype());
  const std::vector<Array> want = run_eagerly(k.c, floats);
  for (std::size_t o = 0; o < want.size(); ++o) {
    const DType kept = got[o].dtype() == DType::boolean ? DType::boolean : DType::f64;
    check_close(label(k, fmt::format("{} against f64, output {}", what, o)),
                got[o].astype(kept), want[o].astype(kept), tol::f32);
  }
}

}  // namespace

void check_special(Checked& k) {
  if (!any_float(k.c.inputs)) return excuse(k, "special", "no float inputs");
  if (!k.c.fixed_values.empty()) return excuse(k, "special", k.c.fixed_values);
  check_special_values(k);
  for (const Use& u : uses(k))
    for (std::size_t i = 0; i < u.in.size(); ++i) {
      if (!is_float(u.in[i].dtype())) continue;
      const std::int64_t n = u.in[i].size();
      for (std::int64_t at = 0; at < n; at += n / kProbes + 1)
        check_nan_reaches(k, u, i, at);
    }
}

void check_integers(Checked& k) {
  if (k.c.inputs.empty()) return excuse(k, "integers", "no inputs");
  if (!any_float(k.c.inputs)) return met(k, "integers");  // the case itself
  if (!k.c.fixed_values.empty()) return excuse(k, "integers", k.c.fixed_values);
  if (!k.c.floats_only.empty()) return excuse(k, "integers", k.c.floats_only);
  for (DType dtype : {DType::i32, DType::boolean}) {
    check_integers_of(k, dtype, kAllInputs);
    if (k.c.inputs.size() < 2) continue;
    for (std::size_t i = 0; i < k.c.inputs.size(); ++i)
      if (is_float(k.c.inputs[i].dtype())) check_integers_of(k, dtype, i);
  }
}

}  // namespace braintrace::testing::internal
