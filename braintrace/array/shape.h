// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shapes and index arithmetic. Axes count from 0; negative axes count from the end.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braintrace {

using Shape = std::vector<std::int64_t>;
using Ints = std::vector<std::int64_t>;

std::string to_string(const Shape& s);  // "[2,3]"

// Product of the dimensions (1 for a scalar). Needs: check_shape has passed.
std::int64_t num_elements(std::span<const std::int64_t> s);

// UserError when a dimension is negative or the array would pass 2^40 elements.
void check_shape(std::string_view who, std::span<const std::int64_t> s);

Ints row_major_strides(std::span<const std::int64_t> s);

// numpy rule; nullopt when the shapes do not broadcast.
std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b);
bool broadcasts_to(const Shape& from, const Shape& to);

// Maps -1 to rank-1 and so on; UserError names `who` when out of range.
std::int64_t normalize_axis(std::string_view who, std::int64_t axis, std::int64_t rank);
// Same for a list; sorted result, UserError on duplicates.
Ints normalize_axes(std::string_view who, const Ints& axes, std::int64_t rank);

bool contains(std::span<const std::int64_t> list, std::int64_t value);

// 0, 1, ..., n-1
Ints iota_ints(std::int64_t n);
Ints inverse(const Ints& permutation);

}  // namespace braintrace
