// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the reductions share. In the IR a reduction drops the axes in attribute `axes`
// (sorted, distinct); keepdims is a reshape of the front end.
#include "braintrace/ops/axis.h"

namespace braintrace {

// ---- slots ----
std::vector<Type> reduced_type(std::span<const Type> in, const Attrs& attrs);
// As reduced_type, and refuses integers without elements: they have no infinity.
std::vector<Type> reduced_type_nonempty(std::span<const Type> in, const Attrs& attrs);
BatchResult batch_reduction(const Site& s, std::span<const BatchAxis> axes);
PositionMap reduction_positions(const Signature& s);
template <ReduceKind kind>
Lowering lower_reduction(const Signature& s) {
  return lowering::Reduce{kind, s.attrs.ints("axes")};
}

// ---- front end: booleans become i32, axes may be negative, none means all ----
Value reduce(const OpDef& op, const Arg& x, const ReduceOptions& options);

// The axes that are not in the list, in order.
Ints kept_axes(std::int64_t rank, const Ints& axes);

// y of a reduction of x, stretched back to x's shape.
Value spread_back(const Value& y, const Shape& x, const Ints& axes);

// ---- eval ----
// The input with the reduced axes last, as rows x n.
struct ReductionRows {
  Array packed;
  std::int64_t rows, n;
};
ReductionRows rows_of(const Kernel& k);

// Combines each row from left to right in Acc.
template <class T, class Acc, class F>
void fold_rows(const Kernel& k, const ReductionRows& r, Acc first, F combine) {
  const T* x = r.packed.data<T>();
  T* y = k.out[0].mutable_data<T>();
  for (std::int64_t i = 0; i < r.rows; ++i) {
    Acc acc = first;
    for (std::int64_t j = 0; j < r.n; ++j)
      acc = combine(acc, static_cast<Acc>(x[i * r.n + j]));
    y[i] = static_cast<T>(acc);
  }
}

}  // namespace braintrace
