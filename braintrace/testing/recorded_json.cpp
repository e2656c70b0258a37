// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/recorded_json.h"

#include <fstream>

#include <nlohmann/json.hpp>

namespace braintrace::testing {

nlohmann::json parse_json(const std::string& text) { return nlohmann::json::parse(text); }

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::string json_text(const nlohmann::json& j) { return j.dump(); }

Array row(const nlohmann::json& numbers, DType dtype) {
  const auto values = numbers.get<std::vector<double>>();
  return array({static_cast<std::int64_t>(values.size())}, values, dtype);
}

}  // namespace braintrace::testing
