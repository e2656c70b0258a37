// SPDX-License-Identifier: Apache-2.0
#pragma once
// Geometry of convolutions: attributes, size rule, checks. Shared by the plain and the
// trainable convolution.
#include <span>
#include <string_view>

#include "braintrace/ir/op_def.h"

namespace braintrace {

ConvGeometry geometry_of(const Attrs& attrs);
Attrs to_attrs(const ConvGeometry& g);

// Empty entries filled in: stride 1, no padding, dilation 1.
ConvGeometry completed(ConvGeometry g, std::int64_t spatial_rank);

// A line of n elements with dilation - 1 holes between neighbours.
std::int64_t dilated(std::int64_t n, std::int64_t dilation);

// Type of y for x [lead..., *spatial, c] and kernel [*k, c/groups, o]. UserError unless
// everything fits. Padding may be negative: it crops.
Type conv_type(std::string_view who, const Type& x, const Type& kernel,
               const ConvGeometry& g);

// y for contiguous f32 or f64 arrays; leading axes of x count as one batch.
void run_conv(const Array& x, const Array& kernel, const ConvGeometry& g, Array& y);

}  // namespace braintrace
