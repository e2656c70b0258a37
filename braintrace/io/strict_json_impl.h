// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON from files nobody vouches for.
#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace braintrace::internal {

// UserError starting with `where` on bad JSON, bad UTF-8, a key that stands twice in one
// object, and nesting deeper than 64 (JSON values are copied and compared by recursion).
nlohmann::json parse_strict_json(const std::string& where, std::string_view text);

// One line; UserError starting with `where` when a text in it is not UTF-8.
std::string dump_json(const std::string& where, const nlohmann::json& j);

// For messages: in_quotes, at most 80 characters, everything but plain ASCII as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace braintrace::internal
