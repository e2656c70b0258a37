// SPDX-License-Identifier: Apache-2.0
// Checked reading of model options.
#include <cmath>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "braintrace/array/array_json.h"
#include "braintrace/nn/model_spec_impl.h"

namespace braintrace::nn::internal {
namespace {

constexpr std::int64_t max_size = (std::int64_t{1} << 31) - 1;

bool is_size(const nlohmann::json& j) {
  if (!j.is_number_integer()) return false;
  const bool huge = j.is_number_unsigned() &&
                    j.get<std::uint64_t>() > static_cast<std::uint64_t>(max_size);
  return !huge && j.get<std::int64_t>() > 0;
}

}  // namespace

ModelSpec::ModelSpec(std::string where, nlohmann::json options)
    : where_(std::move(where)), options_(std::move(options)) {
  BT_REQUIRE(options_.is_object(),
             fmt::format("{}: options must be a JSON object, got {}", where_,
                         options_.type_name()));
  dt = number("dt_ms", 1);
}

void ModelSpec::refuse(const std::string& name, const std::string& rule) const {
  const auto it = options_.find(name);
  const std::string found = it == options_.end() ? "nothing" : it->dump().substr(0, 80);
  throw UserError(fmt::format("{}: '{}' must be {}, got {}", where_, name, rule, found));
}

const nlohmann::json* ModelSpec::find(const std::string& name) {
  known_.insert(name);
  const auto it = options_.find(name);
  return it == options_.end() || it->is_null() ? nullptr : &*it;
}

bool ModelSpec::is_null(const std::string& name) {
  known_.insert(name);
  const auto it = options_.find(name);
  return it != options_.end() && it->is_null();
}

std::int64_t ModelSpec::size(const std::string& name) {
  const nlohmann::json* j = find(name);
  if (j && j->is_array() && j->size() == 1) j = &j->front();
  if (!j || !is_size(*j)) refuse(name, "a positive whole number");
  return j->get<std::int64_t>();
}

std::int64_t ModelSpec::size(const std::string& name, std::int64_t otherwise) {
  return find(name) ? size(name) : otherwise;
}

double ModelSpec::number(const std::string& name, double otherwise) {
  const nlohmann::json* j = find(name);
  if (!j) return otherwise;
  if (!j->is_number() || !std::isfinite(j->get<double>())) refuse(name, "a number");
  return j->get<double>();
}

bool ModelSpec::flag(const std::string& name, bool otherwise) {
  const nlohmann::json* j = find(name);
  if (!j) return otherwise;
  if (!j->is_boolean()) refuse(name, "true or false");
  return j->get<bool>();
}

std::string ModelSpec::text(const std::string& name, const std::string& otherwise) {
  const nlohmann::json* j = find(name);
  if (!j) return otherwise;
  if (!j->is_string()) refuse(name, "a text");
  return j->get<std::string>();
}

Ints ModelSpec::sizes(const std::string& name) {
  const nlohmann::json* j = find(name);
  const std::string rule = "a positive whole number or a list of them";
  if (!j) refuse(name, rule);
  if (is_size(*j)) return {j->get<std::int64_t>()};
  if (!j->is_array() || j->empty()) refuse(name, rule);
  Ints out;
  for (const nlohmann::json& n : *j) {
    if (!is_size(n)) refuse(name, rule);
    out.push_back(n.get<std::int64_t>());
  }
  return out;
}

Ints ModelSpec::integers(const std::string& name, Ints otherwise) {
  const nlohmann::json* j = find(name);
  if (!j) return otherwise;
  const std::string rule = "a whole number or a list of them";
  if (j->is_number_integer()) return {j->get<std::int64_t>()};
  if (!j->is_array() || j->empty()) refuse(name, rule);
  for (const nlohmann::json& n : *j)
    if (!n.is_number_integer()) refuse(name, rule);
  return j->get<Ints>();
}

std::optional<Array> ModelSpec::find_constant(const std::string& name) {
  const nlohmann::json* all = find("constants");
  if (!all || !all->is_object() || !all->contains(name)) return {};
  return array_from_json(fmt::format("{}: constant '{}'", where_, name), all->at(name))
      .astype(DType::f64);
}

Array ModelSpec::constant(const std::string& name) {
  const std::optional<Array> a = find_constant(name);
  BT_REQUIRE(a, fmt::format("{}: needs the constant '{}'", where_, name));
  return *a;
}

void ModelSpec::ignore(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
}

void ModelSpec::finish() const {
  for (const auto& [name, unused] : options_.items())
    BT_REQUIRE(known_.contains(name), fmt::format("{}: unknown option '{}'; known: {}",
                                                  where_, name, fmt::join(known_, ", ")));
}

bool ModelSpec::has_weight(const std::string& path, bool otherwise) const {
  return weights ? weights->contains(path) : otherwise;
}

}  // namespace braintrace::nn::internal
