// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/array_json.h"

#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace braintrace {
namespace {

using nlohmann::json;

double number(const std::string& where, const json& v) {
  if (v.is_number()) return v.get<double>();
  if (v.is_boolean()) return v.get<bool>() ? 1 : 0;
  if (v == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (v == "inf") return std::numeric_limits<double>::infinity();
  if (v == "-inf") return -std::numeric_limits<double>::infinity();
  throw UserError(fmt::format("{}: 'data' must hold numbers, got {}", where,
                              v.dump(-1, ' ', true, json::error_handler_t::replace)));
}

Shape shape_of(const std::string& where, const json& j) {
  Shape shape;
  for (const json& n : j) {
    BT_REQUIRE(n.is_number_integer(), where + ": 'shape' must hold whole numbers");
    const bool huge = n.is_number_unsigned() && n.get<std::uint64_t>() >> 62;
    BT_REQUIRE(!huge, where + ": 'shape' holds a number that is too large");
    shape.push_back(n.get<std::int64_t>());
  }
  check_shape(where, shape);
  return shape;
}

DType dtype_of_text(const std::string& where, const json& j) {
  const auto it = j.find("dtype");
  if (it == j.end() || *it == "float32" || *it == "float64") return DType::f64;
  if (*it == "int32" || *it == "int64") return DType::i32;
  if (*it == "bool") return DType::boolean;
  throw UserError(
      fmt::format("{}: 'dtype' must be float32, float64, int32, int64 or "
                  "bool",
                  where));
}

}  // namespace

Array array_from_json(const std::string& where, const json& j) {
  const bool is_array = j.is_object() && j.contains("shape") && j.contains("data") &&
                        j["shape"].is_array() && j["data"].is_array();
  BT_REQUIRE(is_array, where + ": an array is {\"shape\": [...], \"data\": [...]}");
  const Shape shape = shape_of(where, j["shape"]);
  BT_REQUIRE(num_elements(shape) == static_cast<std::int64_t>(j["data"].size()),
             fmt::format("{}: shape {} does not hold {} numbers", where, to_string(shape),
                         j["data"].size()));
  std::vector<double> values;
  values.reserve(j["data"].size());
  for (const json& v : j["data"]) values.push_back(number(where, v));
  return array(shape, values, dtype_of_text(where, j));
}

}  // namespace braintrace
