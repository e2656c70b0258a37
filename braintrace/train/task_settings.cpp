// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/task_settings.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/base/error.h"

namespace braintrace {
namespace {

// One value of a task's option from text.
struct Setting {
  std::string_view task, name, text;

  [[noreturn]] void refuse(const char* wanted) const {
    throw UserError(fmt::format("{}: {} must be {}, got '{}'", task, name, wanted, text));
  }
  template <class Number>
  void read(Number& field, const char* wanted) const {
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), field);
    if (error != std::errc{} || end != text.data() + text.size()) refuse(wanted);
  }
  void read(std::int64_t& field) const { read(field, "an integer"); }
  void read(double& field) const { read(field, "a number"); }
  void read(std::string& field) const { field = text; }
  void read(DigitsOptions::Scan& field) const { field = digits_scan_from_string(text); }
};

template <class Options>
std::vector<std::string> names_of(Options o) {
  std::vector<std::string> names;
  for_each_option(o, [&](const char* name, auto&) { names.emplace_back(name); });
  return names;
}

}  // namespace

DigitsOptions::Scan digits_scan_from_string(std::string_view s) {
  BT_REQUIRE(s == "rows" || s == "pixels",
             fmt::format("digits: scan must be rows or pixels, got '{}'", s));
  return s == "rows" ? DigitsOptions::Scan::rows : DigitsOptions::Scan::pixels;
}

std::vector<std::string> task_setting_names(std::string_view task) {
  return with_task_options(task, [](auto o, auto) { return names_of(o); });
}

Task configured_task(std::string_view name, const TaskSettings& settings,
                     const TaskOptions& options) {
  return with_task_options(name, [&](auto o, auto make) {
    const std::vector<std::string> known = names_of(o);
    for (const auto& [key, text] : settings)
      BT_REQUIRE(std::find(known.begin(), known.end(), key) != known.end(),
                 fmt::format("{}: no option '{}'; there are {}", name, key,
                             fmt::join(known, ", ")));
    for_each_option(o, [&](const char* key, auto& field) {
      if (const auto it = settings.find(key); it != settings.end())
        Setting{name, key, it->second}.read(field);
    });
    o.task = options;
    return make(o);
  });
}

Task make_task(std::string_view name, const TaskOptions& options) {
  return configured_task(name, {}, options);
}

std::vector<std::string> task_names() {
  return {"copying", "integrator", "delayed_match", "adding",
          "digits",  "evidence",   "pattern",       "text"};
}

void require_task(std::string_view name) {
  const std::vector<std::string> known = task_names();
  BT_REQUIRE(std::find(known.begin(), known.end(), name) != known.end(),
             fmt::format("make_task: unknown task '{}'; known: {}", name,
                         fmt::join(known, ", ")));
}

}  // namespace braintrace
