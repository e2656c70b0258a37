// SPDX-License-Identifier: Apache-2.0
#pragma once
// Argument checks the layers share. `who` is the class name.
#include <cstdint>
#include <string_view>

#include "braintrace/ir/value.h"

namespace braintrace::nn::internal {

// UserError unless n >= 1; returns n. "GRUCell: out_size must be >= 1, got 0"
std::int64_t positive(std::string_view who, std::string_view what, std::int64_t n);

// in + out after checking both: the width of [x, h].
std::int64_t joined_size(std::string_view who, std::int64_t in, std::int64_t out);

// UserError unless the last axis of x has n entries.
void require_features(std::string_view who, const Value& x, std::int64_t n);

// UserError unless the shape of x ends with `size`.
void require_ends_with(std::string_view who, const Value& x, const Shape& size);

// UserError unless the shape `from` broadcasts to `to`.
void require_broadcasts(std::string_view who, std::string_view what, const Shape& from,
                        const Shape& to);

}  // namespace braintrace::nn::internal
