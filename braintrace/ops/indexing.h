// SPDX-License-Identifier: Apache-2.0
#pragma once
// What gather and scatter_add share: picked places along one axis, given by i32 indices
// of any shape, which take the place of that axis.
#include "braintrace/ops/axis.h"

namespace braintrace {

// x.shape[:axis] + indices.shape + x.shape[axis+1:]
Shape picked_shape(const Shape& x, const Shape& indices, std::int64_t axis);

// UserError kind type unless i32.
void require_indices(std::string_view who, const Type& indices);
// UserError "<what> 3 is outside [0, 3)" for the first that is. Returns the indices.
const std::int32_t* checked_indices(std::string_view what, const Array& indices,
                                    std::int64_t n);

// The labels; when run, UserError naming the loss and the first outside [0, classes).
Value checked_labels(const char* loss, const Value& labels, std::int64_t classes);

// Indices of n lanes ([n, ...]) into n stacked axes of size d seen as one axis of n * d.
// An index outside its own lane becomes -1, so that it is still refused when run.
Value lane_indices(std::string_view who, const Value& indices, std::int64_t d);

}  // namespace braintrace
