// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an op is to the executor: a closed list. `run` implements these cases and never
// sees an op.
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "braintrace/array/index_list.h"

namespace braintrace {

class Graph;

enum class MicroOp : std::uint8_t {
  copy,
  neg,
  abs,
  sign,
  sqrt,
  rsqrt,
  exp,
  expm1,
  log,
  log1p,
  tanh,
  sigmoid,
  softplus,
  erf,
  sin,
  cos,
  floor,
  logical_not,
  convert,
  add,
  sub,
  mul,
  div,
  pow,
  max,
  min,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  select,
  clamp,
};

enum class ReduceKind : std::uint8_t { sum, max, min, prod };
enum class RandomKind : std::uint8_t { uniform, normal, bernoulli };

struct ConvGeometry {
  Ints strides, pad_low, pad_high, input_dilation, kernel_dilation;
  std::int64_t groups = 1;
};

namespace lowering {
struct Evaluate {};  // no special form: call OpDef::eval
struct Constant {};
struct Elementwise {
  MicroOp op;
};
struct Broadcast {
  Ints in_axes;
};  // input axis i becomes output axis in_axes[i]
struct Reshape {};
struct Transpose {
  Ints permutation;
};
struct Slice {
  Ints start, step;
};
struct Pad {
  Ints low, interior;
  double value = 0;  // of the elements put in
};
struct Concatenate {
  std::int64_t axis;
};
struct Gather {
  std::int64_t axis;
  std::string indices_of = "gather: index";  // what a refusal calls them
};
struct ScatterAdd {
  std::int64_t axis;
};
struct Reduce {
  ReduceKind kind;
  Ints axes;
};
struct Gemm {  // output axes: batch, free lhs, free rhs
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
};  // Gemm, Conv, Sparse: a third input is a bias along the last output axis
struct Conv {
  ConvGeometry geometry;
};  // x [..., *spatial, c]: leading axes count as one batch
struct Sparse {
  IndexList rows, cols;
};  // y[.., cols[p]] += x[.., rows[p]] * w[p]
struct SparseOuter {
  IndexList rows, cols;
};  // y[p] = sum over .. of a[.., rows[p]] * b[.., cols[p]]
struct Random {
  RandomKind kind;
};
struct Scan {  // inputs consts, carry, xs; body: consts, carry, x -> carry, y
  std::shared_ptr<const Graph> body;
  std::int64_t length;
  std::size_t num_consts, num_carry;
  bool reverse;
};
struct While {  // inputs: consts of the condition, consts of the body, carry
  std::shared_ptr<const Graph> condition, body;
  std::size_t num_condition_consts, num_body_consts;
};
struct Cond {  // inputs: predicate, operands
  std::shared_ptr<const Graph> if_true, if_false;
};
struct Region {};  // another op that runs sub-graphs: call OpDef::eval
}  // namespace lowering

using Lowering =
    std::variant<lowering::Evaluate, lowering::Constant, lowering::Elementwise,
                 lowering::Broadcast, lowering::Reshape, lowering::Transpose,
                 lowering::Slice, lowering::Pad, lowering::Concatenate, lowering::Gather,
                 lowering::ScatterAdd, lowering::Reduce, lowering::Gemm, lowering::Conv,
                 lowering::Sparse, lowering::SparseOuter, lowering::Random,
                 lowering::Scan, lowering::While, lowering::Cond, lowering::Region>;

}  // namespace braintrace
