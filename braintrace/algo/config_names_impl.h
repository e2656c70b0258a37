// SPDX-License-Identifier: Apache-2.0
#pragma once
// The texts of every axis, and JSON values with checked types.
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "braintrace/algo/config.h"

namespace braintrace {

// UserError when the value is none of the axis (a cast integer).
void check_name(TraceFactorization v);
void check_name(TemporalRecursion v);
void check_name(RecurrenceScope v);
void check_name(LearningSignal v);
void check_name(TraceFilter v);
void check_name(UpdateSchedule v);

// `where` starts the message: "ETraceConfig: decay". UserError of kind type otherwise.
double json_number(const std::string& where, const nlohmann::json& j);
std::int64_t json_integer(const std::string& where, const nlohmann::json& j);
std::string json_text(const std::string& where, const nlohmann::json& j);

// UserError of kind type naming the first key that is not in `known`.
void check_keys(const std::string& where, const nlohmann::json& j,
                const std::vector<std::string>& known);

ETraceConfig config_from_json(const nlohmann::json& j);

}  // namespace braintrace
