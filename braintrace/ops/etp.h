// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the files of trainable (ETP) ops share: operands with hooks, type checks of the
// bias, rules that are the same for all ops of the form x . w + b.
#include <string_view>
#include <vector>

#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/product.h"

namespace braintrace {

// ---- front end ----
// Operands in one element type, hooks applied, and the attribute that says so.
struct EtpOperands {
  Values values;  // x, weight, bias if any
  std::string hooks;
};
EtpOperands etp_operands(std::string_view who, const Arg& x, const Arg& weight,
                         const Tangent& bias, const EtpHooks& hooks);
// Adds the optional attribute `hooks`.
Attrs with_hooks(Attrs attrs, const std::string& hooks);

// ---- infer ----
// UserError unless there are `least` inputs, or one more for a bias, and all but the
// first `skip` are floats of one type.
void check_etp_inputs(std::string_view who, std::span<const Type> in, std::size_t least,
                      std::size_t skip = 0);
// UserError unless the bias, if there is one at `index`, has this shape.
void check_bias(std::string_view who, std::span<const Type> in, std::size_t index,
                const Shape& shape);
// UserError unless `hooks` is a list of distinct keys out of "weight" and "bias".
void check_hooks(std::string_view who, const Attrs& attrs);

// ---- calculus ----
// The sum of the tangents that are there; absent when none is.
Tangent sum_of(const std::vector<Tangent>& parts);
// The bias' tangent as part of y's.
Tangent bias_tangent(const Tangent& db, const Type& y);

// A value and its batch axis, if it has one.
struct Lane {
  Value value;
  BatchAxis axis;
};
Lane lane(const Site& s, std::span<const BatchAxis> axes, std::size_t i);
// The op on lanes: emitted when none is batched, else its batch rule.
Lane on_lanes(const OpDef& op, const std::vector<Lane>& in, const Attrs& attrs,
              SourceLoc loc);
// Batch axis in front; a value without one is left alone.
Lane fronted(const Lane& v);
// y + bias, where the bias stands for the last axes of y.
Lane add_bias(const Lane& y, const Lane& bias);
// x[..., i] w[i, o] by plain products; a batch axis of the result is in front.
Lane dot_lanes(const Lane& x, const Lane& w, SourceLoc loc);
BatchResult as_result(const Lane& y);
// Only x (input 0) is batched, so the op keeps its form with one more leading axis.
bool only_x_batched(std::span<const BatchAxis> axes);
BatchResult batch_leading(const Site& s, std::span<const BatchAxis> axes);

// ---- positions ----
// y's axes from a bias that stands for its last axes.
InputFlow bias_flow(std::int64_t y_rank, std::int64_t bias_rank);

// ---- ETP rules ----
// "weight" is input 1, "bias" input 2 when present.
std::vector<WeightInput> weight_and_bias(const Signature& s);
// Trace axis k drives y axis k, for all axes of y.
Anchor same_anchor(std::int64_t y_rank);
// For y[..., o] = sum_i x[..., i] w[i, o] + b[o]: slot 0 has the trace x (outer) y,
// [..., i, o], slot 1 that of y.
Type outer_trace(const Signature& s, int slot);
Anchor outer_anchor(const Signature& s, int slot);
Value outer_instant(const Site& s, int slot, const Value& df);

}  // namespace braintrace
