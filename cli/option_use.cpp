// SPDX-License-Identifier: Apache-2.0
#include "option_use.h"

#include <algorithm>

#include "run_request.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/base/error.h"

namespace braintrace::cli {
namespace {

struct RuleArgument {
  const char* option;
  const char* takers;
  bool (*is_taken_by)(std::string_view rule);
};

constexpr RuleArgument kArguments[] = {
    {"--decay", "pp_prop, hybrid and auto",
     [](std::string_view r) { return takes_decay(r) || r == "auto" || r == "all"; }},
    {"--kappa", "eprop", [](std::string_view r) { return takes_kappa(r) || r == "all"; }},
    {"--snap-n", "snap", [](std::string_view r) { return r == "snap" || r == "all"; }},
    {"--memory", "auto", [](std::string_view r) { return r == "auto"; }},
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void require_arguments_used(const CLI::App& app, const std::vector<std::string>& rules) {
  for (const RuleArgument& a : kArguments) {
    const CLI::Option* o = app.get_option_no_throw(a.option);
    if (o == nullptr || o->count() == 0) continue;
    BT_REQUIRE(std::any_of(rules.begin(), rules.end(), a.is_taken_by),
               fmt::format("{} is an argument of {}; it does nothing for {}", a.option,
                           a.takers, fmt::join(rules, ", ")));
  }
}

void require_only(const CLI::App& app, const std::string& loads,
                  const std::vector<std::string>& beside) {
  for (const CLI::Option* o : app.get_options()) {
    const std::string name = o->get_name();
    if (o->count() == 0 || name == loads || contains(beside, name)) continue;
    throw UserError(
        fmt::format("{}: {} is a part of the run that {} names and cannot be "
                    "given again",
                    app.get_name(), name, loads));
  }
}

}  // namespace braintrace::cli
