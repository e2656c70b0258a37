// SPDX-License-Identifier: Apache-2.0
// Learning-rule coordinates as text and JSON.
#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/config_names_impl.h"
#include "braintrace/base/error.h"

namespace braintrace {
namespace {

using nlohmann::json;

// The values of one axis, in enum order.
struct Axis {
  std::string_view name;
  std::span<const std::string_view> values;
};

constexpr std::array<std::string_view, 3> kFactorization = {"per_param", "io_factorized",
                                                            "random_projection"};
constexpr std::array<std::string_view, 3> kRecursion = {"jacobian", "scalar_leak",
                                                        "none"};
constexpr std::array<std::string_view, 3> kScope = {"diagonal", "coupled", "sparse_n"};
constexpr std::array<std::string_view, 4> kSignal = {"symmetric", "random_feedback",
                                                     "modulatory", "bootstrapped"};
constexpr std::array<std::string_view, 2> kFilter = {"none", "kappa"};
constexpr std::array<std::string_view, 3> kSchedule = {"per_step", "window",
                                                       "sequence_end"};

Axis axis(TraceFactorization) { return {"trace_factorization", kFactorization}; }
Axis axis(TemporalRecursion) { return {"temporal_recursion", kRecursion}; }
Axis axis(RecurrenceScope) { return {"recurrence_scope", kScope}; }
Axis axis(LearningSignal) { return {"learning_signal", kSignal}; }
Axis axis(TraceFilter) { return {"trace_filter", kFilter}; }
Axis axis(UpdateSchedule) { return {"update_schedule", kSchedule}; }

template <class E>
std::string_view name_of(E v) {
  const Axis a = axis(v);
  const auto i = static_cast<std::size_t>(v);
  BT_REQUIRE(i < a.values.size(),
             fmt::format("ETraceConfig: {} must be one of {}, got number {}", a.name,
                         fmt::join(a.values, ", "), i));
  return a.values[i];
}

template <class E>
E parse_name(const json& j) {
  const Axis a = axis(E{});
  const std::string text = json_text(fmt::format("ETraceConfig: {}", a.name), j);
  const auto it = std::find(a.values.begin(), a.values.end(), text);
  BT_REQUIRE(it != a.values.end(),
             fmt::format("ETraceConfig: {} must be one of {}, got '{}'", a.name,
                         fmt::join(a.values, ", "), text));
  return static_cast<E>(it - a.values.begin());
}

// nullptr: absent or null.
const json* given(const json& j, const char* key) {
  const auto it = j.find(key);
  return it == j.end() || it->is_null() ? nullptr : &*it;
}

template <class E>
void read_axis(const json& j, E& field) {
  if (const json* v = given(j, std::string(axis(field).name).c_str()))
    field = parse_name<E>(*v);
}

void check_pair(const char* name, const json& j) {
  BT_REQUIRE(j.size() == 2,
             fmt::format("ETraceConfig: {} must be one value or an (x, f) pair, got {}",
                         name, j.dump()));
}

std::optional<double> read_coefficient(const char* name, const json& j) {
  if (j.is_null()) return {};
  return json_number(fmt::format("ETraceConfig: {}", name), j);
}

Recursion read_recursion(const json& j) {
  if (!j.is_array()) return parse_name<TemporalRecursion>(j);
  check_pair("temporal_recursion", j);
  return {parse_name<TemporalRecursion>(j[0]), parse_name<TemporalRecursion>(j[1])};
}

Decay read_decay(const json& j) {
  if (!j.is_array()) return json_number("ETraceConfig: decay", j);
  check_pair("decay", j);
  return {read_coefficient("decay", j[0]), read_coefficient("decay", j[1])};
}

json to_json_value(const Recursion& r) {
  if (!r.is_pair) return to_string(r.f);
  return json::array({to_string(r.x), to_string(r.f)});
}

json to_json_value(const std::optional<double>& v) { return v ? json(*v) : json(); }

json to_json_value(const Decay& d) {
  if (!d.is_pair) return to_json_value(d.f);
  return json::array({to_json_value(d.x), to_json_value(d.f)});
}

json to_json_object(const ETraceConfigFields& f) {
  return {{"trace_factorization", to_string(f.trace_factorization)},
          {"temporal_recursion", to_json_value(f.temporal_recursion)},
          {"recurrence_scope", to_string(f.recurrence_scope)},
          {"learning_signal", to_string(f.learning_signal)},
          {"trace_filter", to_string(f.trace_filter)},
          {"update_schedule", to_string(f.update_schedule)},
          {"decay", to_json_value(f.decay)},
          {"kappa", to_json_value(f.kappa)},
          {"sparse_n", f.sparse_n ? json(*f.sparse_n) : json()}};
}

// As describe() prints a value: names without quotes, pairs in round brackets.
std::string plain(const json& j) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_array()) return fmt::format("({}, {})", plain(j[0]), plain(j[1]));
  return j.dump();
}

}  // namespace

std::string_view to_string(TraceFactorization v) { return name_of(v); }
std::string_view to_string(TemporalRecursion v) { return name_of(v); }
std::string_view to_string(RecurrenceScope v) { return name_of(v); }
std::string_view to_string(LearningSignal v) { return name_of(v); }
std::string_view to_string(TraceFilter v) { return name_of(v); }
std::string_view to_string(UpdateSchedule v) { return name_of(v); }

void check_name(TraceFactorization v) { name_of(v); }
void check_name(TemporalRecursion v) { name_of(v); }
void check_name(RecurrenceScope v) { name_of(v); }
void check_name(LearningSignal v) { name_of(v); }
void check_name(TraceFilter v) { name_of(v); }
void check_name(UpdateSchedule v) { name_of(v); }

double json_number(const std::string& where, const json& j) {
  BT_REQUIRE_KIND(j.is_number(), ErrorKind::type,
                  fmt::format("{} must be a number, got {}", where, j.dump()));
  return j.get<double>();
}

std::int64_t json_integer(const std::string& where, const json& j) {
  BT_REQUIRE_KIND(j.is_number_integer(), ErrorKind::type,
                  fmt::format("{} must be an integer, got {}", where, j.dump()));
  return j.get<std::int64_t>();
}

std::string json_text(const std::string& where, const json& j) {
  BT_REQUIRE_KIND(j.is_string(), ErrorKind::type,
                  fmt::format("{} must be a text, got {}", where, j.dump()));
  return j.get<std::string>();
}

void check_keys(const std::string& where, const json& j,
                const std::vector<std::string>& known) {
  BT_REQUIRE_KIND(j.is_object(), ErrorKind::type,
                  fmt::format("{} must be a JSON object, got {}", where, j.dump()));
  for (const auto& [key, value] : j.items())
    BT_REQUIRE_KIND(
        std::find(known.begin(), known.end(), key) != known.end(), ErrorKind::type,
        fmt::format("{} takes no '{}'; it takes {}", where, key, fmt::join(known, ", ")));
}

ETraceConfig config_from_json(const json& j) {
  check_keys(
      "ETraceConfig", j,
      {"trace_factorization", "temporal_recursion", "recurrence_scope", "learning_signal",
       "trace_filter", "update_schedule", "decay", "kappa", "sparse_n", "window_size"});
  ETraceConfigFields f;
  read_axis(j, f.trace_factorization);
  read_axis(j, f.recurrence_scope);
  read_axis(j, f.learning_signal);
  read_axis(j, f.trace_filter);
  read_axis(j, f.update_schedule);
  if (const json* v = given(j, "temporal_recursion"))
    f.temporal_recursion = read_recursion(*v);
  if (const json* v = given(j, "decay")) f.decay = read_decay(*v);
  if (const json* v = given(j, "kappa")) f.kappa = read_coefficient("kappa", *v);
  if (const json* v = given(j, "sparse_n"))
    f.sparse_n = json_integer("ETraceConfig: sparse_n", *v);
  if (const json* v = given(j, "window_size"))
    f.window_size = json_integer("ETraceConfig: window_size", *v);
  return ETraceConfig::make(f);
}

ETraceConfig ETraceConfig::from_json(const std::string& text) {
  return config_from_json(json::parse(text, nullptr, false));
}

std::string ETraceConfig::to_json() const { return to_json_object(f_).dump(); }

std::string ETraceConfig::describe() const {
  const json mine = to_json_object(f_), usual = to_json_object({});
  std::vector<std::string> parts;
  for (const char* key : {"trace_factorization", "temporal_recursion", "recurrence_scope",
                          "learning_signal", "trace_filter", "update_schedule", "decay",
                          "kappa", "sparse_n"})
    if (mine[key] != usual[key])
      parts.push_back(fmt::format("{}={}", key, plain(mine[key])));
  return fmt::format("ETraceConfig({})", fmt::join(parts, ", "));
}

}  // namespace braintrace
