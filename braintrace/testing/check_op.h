// SPDX-License-Identifier: Apache-2.0
#pragma once
// One case per op, many checks. Also for users' own ops: failures throw CheckFailure, so
// any test framework can report them.
//   1 the traced program holds the op, verifies, and parse(print(g)) == g
//   2 eager, interpreted and (f32 against f64) values agree
//   3 hand-checked points
//   4 jvp against central differences in f64; vjp against jvp by the dot-product identity
//   5 batch rule against a loop, for every input alone and for all together
//   6 position map against the numerical pattern of dependence
//   7 ETP rule (anchor, instant, contract) against the weight-vjp
//   8 planned values against interpreted ones: bit for bit where nothing is summed
//   9 edges, made from the case: see edge_kinds()
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/close.h"

namespace braintrace::testing {

struct HandPoint {
  std::vector<Array> inputs, outputs;
};

struct OpCase {
  std::string op;  // registry name the case is about
  std::function<Values(const Values&)> build;
  std::vector<Array> inputs;           // floats in f64
  std::vector<HandPoint> expect = {};  // checked to tol::f64
  bool differentiable = true;          // false: all output tangents must be absent
  bool reversible = true;              // false: reverse mode must be refused
  std::vector<bool> active = {};       // inputs to differentiate; default: all f64 ones
  bool check_batch = true;
  bool check_positions = true;
  // Why the op may not see other numbers than these (a loop that would not end).
  std::string fixed_values = {};
  std::string floats_only = {};  // why `build` cannot take integers for floats
  OpTable ops = {};              // default: op_table(); users add their own
};

// Returns one line for the log: op, inputs, worst errors. Throws CheckFailure.
// Also appends the line to the file named by the environment variable BT_LOG_OPS.
std::string check_op(const OpCase& c);

// What check 9 makes of every case, interpreted and planned:
//   empty, one  axes of these sizes and as many lanes, with derivatives
//   broadcast   an input with an axis of size 1 or one axis less
//   views       inputs that are transposed, spaced or stretched windows: the same bits
//   special     NaN, infinities, -0; NaN reaches what small changes do
//   integers    i32 and bool in place of floats: the values of f64, or a UserError
//   refusals    wrong number of inputs, types, shapes, attributes: a UserError that names
//               the op and what was found, or a result
// The log line counts them or says why there are none: "  empty 4  broadcast - (one
// input)".
std::span<const std::string_view> edge_kinds();

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Deterministic test data in f64.
Array uniform(Shape shape, double low, double high, std::uint64_t seed = 1);
// Distinct values at least `gap` apart: no ties for max, sort or rounding.
Array distinct(Shape shape, double gap = 0.1, std::uint64_t seed = 1);

}  // namespace braintrace::testing
