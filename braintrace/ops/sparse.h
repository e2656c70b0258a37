// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the ops with fixed sparse connectivity share: the structure as attributes, checks,
// and the products written with plain gathers for operands that differ from lane to lane.
#include <string_view>
#include <vector>

#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

// in, out, rows, cols; and what else the op has.
std::vector<AttrSpec> sparse_attr_specs(std::vector<AttrSpec> more = {});
Attrs sparse_attrs(const SparseStructure& s);
SparseStructure sparse_structure(const Attrs& attrs);
// UserError, naming `who`, when lists and sizes do not fit each other.
void check_sparse_attrs(std::string_view who, const Attrs& attrs);
// UserError unless the value is [..., size].
void check_last_axis(std::string_view who, std::string_view name, const Type& t,
                     std::int64_t size);
// UserError unless there is one weight per connection.
void check_sparse_weight(std::string_view who, const Type& w, const Attrs& attrs);

// (x, w, bias if any) -> y: infer, eval, lower and positions of the products.
Type sparse_product_type(std::string_view who, std::span<const Type> in,
                         const Attrs& attrs);
void eval_sparse_product(const Kernel& k);
Lowering lower_sparse_product(const Signature& s);
PositionMap sparse_product_positions(const Signature& s);

// x[..., rows] and y[..., cols]: one entry per connection.
Value at_rows(const Value& x, const SparseStructure& s);
Value at_cols(const Value& y, const SparseStructure& s);
// x[..., rows] w scattered to cols; leading axes of both broadcast.
Value gathered_product(const Value& x, const Value& w, const SparseStructure& s);

}  // namespace braintrace
