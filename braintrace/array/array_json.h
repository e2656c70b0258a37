// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays as model files and recorded runs hold them:
//   {"shape": [2, 3], "data": [row-major numbers], "dtype": "int32"}
// Without "dtype" the numbers are f64; "nan", "inf" and "-inf" may stand as texts.
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "braintrace/array/array.h"

namespace braintrace {

// UserError starting with `where` on anything else.
Array array_from_json(const std::string& where, const nlohmann::json& j);

}  // namespace braintrace
