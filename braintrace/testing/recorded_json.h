// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recorded numbers as JSON. Parsing and printing are compiled once, behind these names: a
// file that calls nlohmann's own takes seconds longer to compile.
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "braintrace/array/array.h"

namespace braintrace::testing {

// Throws nlohmann::json::parse_error where the text is no JSON.
nlohmann::json parse_json(const std::string& text);
nlohmann::json read_json(const std::string& path);
std::string json_text(const nlohmann::json& j);

// A list of numbers as an array of one axis.
Array row(const nlohmann::json& numbers, DType dtype);

}  // namespace braintrace::testing
