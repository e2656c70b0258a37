// SPDX-License-Identifier: Apache-2.0
// Names of entries in the table of algorithms: the rule, its numbers, its method.
//   pp_09_ss  pp_rank5_ms  pp_08_03_win2  eprop_k07_ms  eprop_random_ss  leak05_ss
//   io_coupled_09_ms  snap3_ss  d_rtrl_win3  d_rtrl_ss_mask_mean  bptt
#include <charconv>

#include <fmt/core.h>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/testing/parity_table_impl.h"

namespace braintrace::testing::internal {
namespace {

using nlohmann::json;

std::int64_t whole_number(const std::string& entry, std::string_view digits) {
  std::int64_t n = 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), n);
  BT_REQUIRE(
      !digits.empty() && error == std::errc() && stop == digits.data() + digits.size(),
      fmt::format("'{}': '{}' must be a whole number", entry, digits));
  return n;
}

// "059" is 0.59: the point stands after the first digit.
double decimal(const std::string& entry, std::string_view digits) {
  whole_number(entry, digits);
  std::string text(digits);
  text.insert(1, ".");
  return std::stod(text + "0");
}

bool drop_end(std::string& text, std::string_view end) {
  const bool found = text.ends_with(end);
  if (found) text.resize(text.size() - end.size());
  return found;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == '_')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

// One factor for both sides, or one for each: "09", "rank5", "08" "03".
json factors(const std::string& rule, std::span<const std::string> words) {
  BT_REQUIRE(words.size() == 1 || words.size() == 2,
             fmt::format("unknown rule '{}': it needs one factor or two", rule));
  json out = json::array();
  for (const std::string& word : words) {
    if (word.starts_with("rank"))
      out.push_back(whole_number(rule, word.substr(4)));
    else
      out.push_back(decimal(rule, word));
  }
  return out.size() == 1 ? out[0] : out;
}

json eprop(const std::string& rule, std::span<const std::string> words) {
  json args = json::object();
  for (const std::string& word : words) {
    if (word == "random") {
      args["feedback"] = "random";
      args["random_feedback_key"] = 0;
    } else {
      BT_REQUIRE(word.starts_with("k"), "unknown rule '" + rule + "'");
      args["kappa_filter_decay"] = decimal(rule, word.substr(1));
    }
  }
  return {{"class", "EProp"}, {"args", args}};
}

json coordinates(const json& config) {
  return {{"class", "ETraceConfig"}, {"args", {{"config", config}}}};
}

json rule_with_numbers(const std::string& rule) {
  const std::vector<std::string> words = words_of(rule);
  const auto after = [&](std::size_t n) { return std::span(words).subspan(n); };
  if (words[0] == "pp")
    return {{"class", "pp_prop"}, {"args", {{"decay_or_rank", factors(rule, after(1))}}}};
  if (words[0] == "eprop") return eprop(rule, after(1));
  if (rule.starts_with("io_coupled_"))
    return coordinates({{"trace_factorization", "io_factorized"},
                        {"recurrence_scope", "coupled"},
                        {"decay", factors(rule, after(2))}});
  if (words.size() == 1 && rule.starts_with("leak"))
    return coordinates({{"temporal_recursion", "scalar_leak"},
                        {"decay", decimal(rule, rule.substr(4))}});
  if (words.size() == 1 && rule.starts_with("snap"))
    return {{"class", "SnAp"}, {"args", {{"n", whole_number(rule, rule.substr(4))}}}};
  throw UserError("unknown rule '" + rule + "'");
}

json rule_json(const std::string& rule) {
  constexpr std::pair<std::string_view, std::string_view> plain[] = {
      {"d_rtrl", "D_RTRL"},
      {"ostl_recurrent", "OSTLRecurrent"},
      {"ostl_feedforward", "OSTLFeedforward"},
      {"three_factor", "ThreeFactor"},
      {"uoro", "UORO"},
      {"bptt", "BPTT"},
  };
  for (const auto& [name, cls] : plain)
    if (rule == name) return {{"class", cls}};
  if (rule == "none") return coordinates({{"temporal_recursion", "none"}});
  return rule_with_numbers(rule);
}

}  // namespace

EntryName parse_entry_name(const std::string& name) {
  EntryName e{.rule = name};
  e.mean = drop_end(e.rule, "_mask_mean");
  if (drop_end(e.rule, "_ms")) {
    e.method = VjpMethod::multi_step;
  } else if (const std::size_t at = e.rule.find("_win"); at != std::string::npos) {
    e.method = VjpMethod::multi_step;
    e.window = whole_number(name, std::string_view(e.rule).substr(at + 4));
    BT_REQUIRE(e.window > 0, fmt::format("'{}': a window needs a step", name));
    e.rule.resize(at);
  } else {
    drop_end(e.rule, "_ss");
  }
  return e;
}

Algorithm algorithm_of(const EntryName& name) {
  json j = rule_json(name.rule);
  j["vjp_method"] = to_string(name.method);
  return algorithm_from_json(j.dump());
}

}  // namespace braintrace::testing::internal
