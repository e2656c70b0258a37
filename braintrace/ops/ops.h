// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything model code and rules compute with. Names and broadcasting follow numpy;
// plain numbers take the type of the values they meet. Errors name the op, the rule and
// the value.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "braintrace/ir/lowering.h"
#include "braintrace/ir/value.h"

namespace braintrace {

using Values = std::vector<Value>;
using Loc = SourceLoc;

// ---- element by element ---------------------------------------------------------------
Value abs(Arg x);
Value copy(Arg x);  // x under a name of its own
Value cos(Arg x);
Value erf(Arg x);
Value exp(Arg x);
Value expm1(Arg x);
Value floor(Arg x);
Value log(Arg x);
Value log1p(Arg x);
Value logical_not(Arg x);
Value neg(Arg x);
Value rsqrt(Arg x);
Value sigmoid(Arg x);
Value sign(Arg x);
Value sin(Arg x);
Value softplus(Arg x);
Value sqrt(Arg x);
Value stop_gradient(Arg x);
Value tanh(Arg x);
Value astype(Arg x, DType dtype);

Value add(Arg a, Arg b);
Value div(Arg a, Arg b);  // integers divide as floats
Value equal(Arg a, Arg b);
Value greater(Arg a, Arg b);
Value greater_equal(Arg a, Arg b);
Value less(Arg a, Arg b);
Value less_equal(Arg a, Arg b);
Value logical_and(Arg a, Arg b);
Value logical_or(Arg a, Arg b);
Value logical_xor(Arg a, Arg b);
Value maximum(Arg a, Arg b);  // NaN if either is NaN
Value minimum(Arg a, Arg b);
Value mul(Arg a, Arg b);
Value not_equal(Arg a, Arg b);
Value pow(Arg a, Arg b);
Value sub(Arg a, Arg b);

Value select(Arg condition, Arg if_true, Arg if_false);
Value clamp(Arg x, Arg low, Arg high);

// A function with its own derivative. Both are traced once on symbolic inputs.
// jvp gets (inputs..., one tangent per float input...) and returns one tangent per float
// output. Values that the functions capture from outside count as constants of the
// derivative: pass what you differentiate by as an input.
struct CustomJvpOptions {
  // Declared and checked: output position p depends on input position p only.
  bool elementwise = false;
};
using ValuesFn = std::function<Values(const Values&)>;
Values custom_jvp(const Values& inputs, const ValuesFn& primal, const ValuesFn& jvp,
                  CustomJvpOptions options = {},
                  Loc loc = std::source_location::current());

// ---- shape ----------------------------------------------------------------------------
Value broadcast_to(Arg x, const Shape& shape);
Value concat(const Values& parts, std::int64_t axis = -1,
             Loc loc = std::source_location::current());
Value expand_dims(Arg x, std::int64_t axis);
Value flip(Arg x, const Ints& axes);
Value iota(std::int64_t n, DType dtype = DType::i32);
Value pad(Arg x, const Ints& low, const Ints& high, double value = 0, Ints interior = {});
Value reshape(Arg x, const Shape& shape);  // one entry may be -1
Value roll(Arg x, std::int64_t shift, std::int64_t axis = -1);
Value slice(Arg x, const Ints& start, const Shape& size, Ints step = {});
Value slice_axis(Arg x, std::int64_t axis, std::int64_t start, std::int64_t size);
Value squeeze(Arg x, std::int64_t axis);
Value stack(const Values& parts, std::int64_t axis = 0,
            Loc loc = std::source_location::current());
Value transpose(Arg x, Ints permutation = {});  // default: reverse the axes

// indices: i32, each in [0, dim of axis); UserError otherwise when run.
Value take(Arg x, Arg indices, std::int64_t axis = 0);
// x with updates[.., i, ..] added at indices[i] along the axis.
Value scatter_add(Arg x, Arg indices, Arg updates, std::int64_t axis = 0);

// ---- reductions: axes empty = all ---------------------------------------------------
struct ReduceOptions {
  Ints axes = {};
  bool keepdims = false;
};
Value sum(Arg x, ReduceOptions options = {});
Value max(Arg x, ReduceOptions options = {});
Value min(Arg x, ReduceOptions options = {});
Value prod(Arg x, ReduceOptions options = {});
Value mean(Arg x, ReduceOptions options = {});
Value argmax(Arg x, std::int64_t axis = -1);  // first of the largest; i32
Value cumsum(Arg x, std::int64_t axis = -1, bool reverse = false);

// ---- products -----------------------------------------------------------------------
struct DotDims {
  Ints lhs_contract, rhs_contract, lhs_batch = {}, rhs_batch = {};
};
// Output axes: batch, free lhs, free rhs.
Value dot_general(Arg lhs, Arg rhs, const DotDims& dims);
// Plain (untraced) product a[..., i] b[i, o]; rank-1 operands as numpy.
Value dot(Arg a, Arg b);
// The same as numpy's @: axes before the last two are stacks of matrices and broadcast.
Value stacked_dot(Arg a, Arg b);

// Cross-correlation. x [n, *spatial, c], kernel [*spatial, c/groups, o], y [n, *spatial,
// o]. Empty geometry entries: stride 1, no padding, dilation 1.
Value conv_general(Arg x, Arg kernel, const ConvGeometry& geometry);
// "SAME" and "VALID" as low/high padding for the given sizes.
ConvGeometry same_padding(const Shape& spatial, const Shape& kernel,
                          ConvGeometry geometry);

struct PoolOptions {
  Shape window;
  Ints strides = {};  // default: window
  std::string_view padding = "VALID";
};
Value max_pool(Arg x, const PoolOptions& options);  // x [n, *spatial, c]
Value avg_pool(Arg x, const PoolOptions& options);

// ---- composites ---------------------------------------------------------------------
Value layer_norm(Arg x, const Ints& axes = {-1}, double epsilon = 1e-6);
Value log_softmax(Arg x, std::int64_t axis = -1);
Value logsumexp(Arg x, std::int64_t axis = -1);
Value one_hot(Arg indices, std::int64_t n, DType dtype = DType::f32);
Value relu(Arg x);
Value softmax(Arg x, std::int64_t axis = -1);
Value square(Arg x);
Value zeros_like(const Value& x);
Value ones_like(const Value& x);

// ---- random: keys are i32[2] --------------------------------------------------------
Value random_bernoulli(Arg key, Arg p, const Shape& shape);
Value random_fold_in(Arg key, Arg data);  // i32 scalar
Value random_normal(Arg key, const Shape& shape, DType dtype = DType::f32);
Value random_uniform(Arg key, const Shape& shape, DType dtype = DType::f32);

// ---- control flow -------------------------------------------------------------------
// body(carry..., x_t...) -> (carry'..., y_t...). xs are read along axis 0, ys stacked
// there.
struct ScanOptions {
  std::int64_t length = -1;  // needed only without xs
  bool reverse = false;
};
struct ScanResult {
  Values carry, ys;
};
ScanResult scan(const ValuesFn& body, const Values& init, const Values& xs,
                ScanOptions options = {}, Loc loc = std::source_location::current());
// Repeats body while condition(carry) is true. Forward mode only.
Values while_loop(const ValuesFn& condition, const ValuesFn& body, const Values& init,
                  Loc loc = std::source_location::current());
// Both branches must give the same types. Only the chosen one runs.
Values cond(Arg predicate, const ValuesFn& if_true, const ValuesFn& if_false,
            const Values& operands);

// ---- trainable (ETP) ops --------------------------------------------------------------
// Hooks are prologues of a weight that belong to the op; any differentiable program.
using Hook = std::function<Value(const Value&)>;
struct EtpHooks {
  Hook weight = {}, bias = {};
};
// x[..., i] w[i, o] (+ b[o]); any leading axes.
Value matmul(Arg x, Arg weight, const Tangent& bias = {}, const EtpHooks& hooks = {});
// w itself as a trace-carrying value.
Value element_wise(Arg weight, const Hook& hook = {});
// x[..., g, k] w[g, k, n] (+ b[g, n])
Value grouped_matmul(Arg x, Arg weight, const Tangent& bias = {},
                     const EtpHooks& hooks = {});
// Two operands, "bhd,hde->bhe": first letter of x and y is the batch.
Value einsum(std::string_view equation, Arg x, Arg weight, const Hook& hook = {});
// Rows of w[v, d] picked by i32 indices of any shape.
Value embedding(Arg indices, Arg weight, const Hook& hook = {});
// As conv_general, traced; bias [o].
Value conv(Arg x, Arg kernel, const ConvGeometry& geometry, const Tangent& bias = {},
           const EtpHooks& hooks = {});

// Fixed connectivity: stored value p joins input rows[p] to output cols[p].
struct SparseStructure {
  std::int64_t in = 0, out = 0;
  IndexList rows, cols;  // shared by copies
};
SparseStructure csr_structure(std::int64_t in, std::int64_t out,
                              const IndexList& row_pointers, const IndexList& columns);
SparseStructure csc_structure(std::int64_t in, std::int64_t out,
                              const IndexList& col_pointers, const IndexList& rows);
SparseStructure coo_structure(std::int64_t in, std::int64_t out, const IndexList& rows,
                              const IndexList& cols);
SparseStructure dense_structure(const Array& pattern);  // non-zeros, row-major
SparseStructure transposed(const SparseStructure& s);
// Every input reaches between 1/2 and 3/2 of `mean_degree` outputs: number and outputs
// are drawn evenly, no connection twice. Sorted by input, then output.
SparseStructure random_structure(std::int64_t in, std::int64_t out,
                                 std::int64_t mean_degree, std::uint64_t seed);
Value sparse_matmul(Arg x, Arg weight, const SparseStructure& structure,
                    const Tangent& bias = {}, const EtpHooks& hooks = {});
// The same product as a plain op, and its gradient towards the weight:
// y[..., cols[p]] += x[..., rows[p]] w[p];  w[p] = sum over ... of x[..., rows[p]] y[...,
// cols[p]].
Value sparse_dot(Arg x, Arg weight, const SparseStructure& structure);
Value sparse_outer(Arg x, Arg y, const SparseStructure& structure);
// alpha x b[i, r] a[r, o] (+ bias[o])
Value lora_matmul(Arg x, Arg b, Arg a, double alpha = 1.0, const Tangent& bias = {});

// ---- operators ----------------------------------------------------------------------
Value operator+(Arg a, Arg b);
Value operator-(Arg a, Arg b);
Value operator*(Arg a, Arg b);
Value operator/(Arg a, Arg b);
Value operator-(Arg a);
Value operator<(Arg a, Arg b);
Value operator<=(Arg a, Arg b);
Value operator>(Arg a, Arg b);
Value operator>=(Arg a, Arg b);

}  // namespace braintrace
