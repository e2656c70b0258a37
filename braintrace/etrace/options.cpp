// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/options.h"

#include <functional>
#include <map>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace {
namespace {

void require_one_of(std::string_view knob, const std::string& value,
                    const std::vector<std::string>& allowed) {
  for (const std::string& a : allowed)
    if (value == a) return;
  throw UserError(fmt::format("ControlFlowPolicy: {} must be one of {}, got '{}'", knob,
                              fmt::join(allowed, ", "), value));
}

// One option: its values in enum order and where it is stored.
struct Choice {
  std::vector<std::string> values;
  std::function<void(CompileOptions&, int)> assign;
  std::function<int(const CompileOptions&)> read;
};

template <class E>
Choice choice(E CompileOptions::*field, std::vector<std::string> values) {
  return {std::move(values),
          [field](CompileOptions& o, int i) { o.*field = static_cast<E>(i); },
          [field](const CompileOptions& o) { return static_cast<int>(o.*field); }};
}

const std::map<std::string, Choice, std::less<>>& choices() {
  static const std::map<std::string, Choice, std::less<>> table = {
      {"weight_paths",
       choice(&CompileOptions::weight_paths, {"auto", "dense", "local", "exclude"})},
      {"mixing", choice(&CompileOptions::mixing, {"cut", "sum"})},
      {"grouping", choice(&CompileOptions::grouping, {"reachable", "reference"})},
      {"shape_filter",
       choice(&CompileOptions::shape_filter, {"positions", "raw_broadcast"})},
      {"exclusion_label", choice(&CompileOptions::exclusion_label, {"reachable", "met"})},
      {"two_state_equations",
       choice(&CompileOptions::two_state_equations, {"allow", "refuse"})},
      {"opaque_records", choice(&CompileOptions::opaque_records, {"once", "twice"})},
      {"weight_source", choice(&CompileOptions::weight_source, {"all", "first_found"})},
      {"snap_fallback",
       choice(&CompileOptions::snap_fallback, {"per_sample", "all_axes"})},
      {"counted_loops", choice(&CompileOptions::counted_loops, {"scan", "keep"})},
      {"on_refused", choice(&CompileOptions::on_refused, {"fail", "freeze"})},
  };
  return table;
}

const Choice& choice_of(std::string_view function, std::string_view name) {
  const auto it = choices().find(name);
  BT_REQUIRE(it != choices().end(),
             fmt::format("{}: no option '{}'; there are {}", function, name,
                         fmt::join(option_names(), ", ")));
  return it->second;
}

}  // namespace

void validate(const ControlFlowPolicy& p) {
  require_one_of("cond", p.cond, {"convert", "opaque"});
  require_one_of("while_hidden", p.while_hidden, {"opaque-fwd", "error"});
  require_one_of("etp_in_control_flow", p.etp_in_control_flow,
                 {"local", "error", "exclude"});
  require_one_of("scan_descent", p.scan_descent, {"auto", "off"});
  BT_REQUIRE(
      p.fixpoint_iteration_limit >= 1,
      fmt::format("ControlFlowPolicy: fixpoint_iteration_limit must be >= 1, got {}",
                  p.fixpoint_iteration_limit));
}

CompileOptions compat(CompileOptions base) {
  base.weight_paths = WeightPaths::exclude;
  base.mixing = Mixing::sum;
  base.grouping = Grouping::reference;
  base.shape_filter = ShapeFilter::raw_broadcast;
  base.exclusion_label = ExclusionLabel::met;
  base.two_state_equations = TwoStateEquations::refuse;
  base.opaque_records = OpaqueRecords::twice;
  base.weight_source = WeightSource::first_found;
  base.snap_fallback = SnapFallback::all_axes;
  base.counted_loops = CountedLoops::keep;
  std::string& enclosed = base.control_flow.etp_in_control_flow;
  if (enclosed == "local") enclosed = "error";
  return base;
}

void set_option(CompileOptions& options, std::string_view name, std::string_view value) {
  const Choice& choice = choice_of("set_option", name);
  const std::vector<std::string>& values = choice.values;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == value) return choice.assign(options, static_cast<int>(i));
  throw UserError(fmt::format("set_option: {} must be one of {}, got '{}'", name,
                              fmt::join(values, ", "), value));
}

std::string option_value(const CompileOptions& options, std::string_view name) {
  const Choice& choice = choice_of("option_value", name);
  return choice.values[static_cast<std::size_t>(choice.read(options))];
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const auto& [name, c] : choices()) names.push_back(name);
  return names;
}

}  // namespace braintrace
