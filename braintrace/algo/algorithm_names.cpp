// SPDX-License-Identifier: Apache-2.0
// The table of presets by name.
#include "braintrace/algo/algorithm_names.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/config_names_impl.h"
#include "braintrace/base/error.h"

namespace braintrace {
namespace {

using nlohmann::json;
using Args = AlgorithmArgs;

template <class T>
void set(T& field, const std::optional<T>& given) {
  if (given) field = *given;
}
template <class T>
void set(std::optional<T>& field, const std::optional<T>& given) {
  if (given) field = given;
}
void set(DecayOrRank& field, const DecayOrRank& given) {
  if (given.sides) field = given;
}

Algorithm d_rtrl(const Args& a) {
  D_RTRL p;
  set(p.config, a.config);
  set(p.random_feedback_key, a.random_feedback_key);
  set(p.snap_max_jacobian_elements, a.snap_max_jacobian_elements);
  set(p.trace_dtype, a.trace_dtype);
  set(p.vjp_method, a.vjp_method);
  return p;
}

Algorithm pp(const Args& a) {
  pp_prop p;
  set(p.decay_or_rank, a.decay_or_rank);
  set(p.config, a.config);
  set(p.random_feedback_key, a.random_feedback_key);
  set(p.vjp_method, a.vjp_method);
  return p;
}

Algorithm eprop(const Args& a) {
  EProp p;
  set(p.feedback, a.feedback);
  set(p.kappa_filter_decay, a.kappa_filter_decay);
  set(p.random_feedback_key, a.random_feedback_key);
  set(p.trace_dtype, a.trace_dtype);
  set(p.vjp_method, a.vjp_method);
  return p;
}

Algorithm snap(const Args& a) {
  SnAp p;
  set(p.n, a.n);
  set(p.snap_max_jacobian_elements, a.snap_max_jacobian_elements);
  set(p.trace_dtype, a.trace_dtype);
  set(p.vjp_method, a.vjp_method);
  return p;
}

Algorithm uoro(const Args& a) {
  UORO p;
  set(p.projection_key, a.projection_key);
  set(p.projection_eps, a.projection_eps);
  set(p.vjp_method, a.vjp_method);
  return p;
}

// Presets whose arguments are a trace type and a method.
template <class Preset>
Algorithm traced(const Args& a) {
  Preset p;
  set(p.trace_dtype, a.trace_dtype);
  set(p.vjp_method, a.vjp_method);
  return p;
}

template <class Preset>
Algorithm smoothed(const Args& a) {
  Preset p;
  set(p.decay_or_rank, a.decay_or_rank);
  set(p.vjp_method, a.vjp_method);
  return p;
}

Algorithm exact_rtrl(const Args& a) {
  ExactRTRL p;
  set(p.vjp_method, a.vjp_method);
  return p;
}

Algorithm bptt(const Args& a) {
  BPTT p;
  set(p.segments, a.segments);
  return p;
}

Algorithm from_config(const Args& a) {
  BT_REQUIRE_KIND(a.config, ErrorKind::type, "ETraceConfig: config must be given");
  AlgorithmOptions options;
  set(options.random_feedback_key, a.random_feedback_key);
  set(options.snap_max_jacobian_elements, a.snap_max_jacobian_elements);
  set(options.projection_key, a.projection_key);
  set(options.projection_eps, a.projection_eps);
  set(options.trace_dtype, a.trace_dtype);
  return algorithm_from_config(*a.config, options, a.vjp_method);
}

struct Preset {
  std::string_view class_name;
  std::vector<std::string_view> names;  // for algorithm_by_name
  std::vector<std::string_view> takes;  // fields of AlgorithmArgs
  Algorithm (*make)(const Args&);
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table = {
      {"D_RTRL",
       {"d_rtrl"},
       {"config", "random_feedback_key", "snap_max_jacobian_elements", "trace_dtype",
        "vjp_method"},
       d_rtrl},
      {"pp_prop",
       {"pp_prop"},
       {"decay_or_rank", "config", "random_feedback_key", "vjp_method"},
       pp},
      {"ES_D_RTRL",
       {"es_d_rtrl", "esd_rtrl"},
       {"decay_or_rank", "config", "random_feedback_key", "vjp_method"},
       pp},
      {"EProp",
       {"eprop", "e_prop"},
       {"feedback", "kappa_filter_decay", "random_feedback_key", "trace_dtype",
        "vjp_method"},
       eprop},
      {"OSTLRecurrent",
       {"ostl_recurrent"},
       {"trace_dtype", "vjp_method"},
       traced<OSTLRecurrent>},
      {"OSTLFeedforward",
       {"ostl_feedforward"},
       {"decay_or_rank", "vjp_method"},
       smoothed<OSTLFeedforward>},
      {"SnAp",
       {"snap"},
       {"n", "snap_max_jacobian_elements", "trace_dtype", "vjp_method"},
       snap},
      {"UORO", {"uoro"}, {"projection_key", "projection_eps", "vjp_method"}, uoro},
      {"ThreeFactor",
       {"three_factor"},
       {"trace_dtype", "vjp_method"},
       traced<ThreeFactor>},
      {"DNI", {"dni"}, {"trace_dtype", "vjp_method"}, traced<DNI>},
      {"Hybrid", {"hybrid"}, {"decay_or_rank", "vjp_method"}, smoothed<Hybrid>},
      {"ExactRTRL", {"rtrl", "exact_rtrl"}, {"vjp_method"}, exact_rtrl},
      {"BPTT", {"bptt"}, {"segments"}, bptt},
      {"ETraceConfig",
       {},
       {"config", "random_feedback_key", "snap_max_jacobian_elements", "projection_key",
        "projection_eps", "trace_dtype", "vjp_method"},
       from_config},
  };
  return table;
}

std::vector<std::string_view> given(const Args& a) {
  std::vector<std::string_view> names;
  const auto note = [&](bool is_given, std::string_view name) {
    if (is_given) names.push_back(name);
  };
  note(a.decay_or_rank.sides.has_value(), "decay_or_rank");
  note(a.n.has_value(), "n");
  note(a.feedback.has_value(), "feedback");
  note(a.kappa_filter_decay.has_value(), "kappa_filter_decay");
  note(a.random_feedback_key.has_value(), "random_feedback_key");
  note(a.projection_key.has_value(), "projection_key");
  note(a.projection_eps.has_value(), "projection_eps");
  note(a.snap_max_jacobian_elements.has_value(), "snap_max_jacobian_elements");
  note(a.trace_dtype.has_value(), "trace_dtype");
  note(a.segments.has_value(), "segments");
  note(a.config.has_value(), "config");
  note(a.vjp_method.has_value(), "vjp_method");
  return names;
}

Algorithm make(const Preset& p, const Args& args) {
  for (std::string_view name : given(args))
    BT_REQUIRE_KIND(
        std::find(p.takes.begin(), p.takes.end(), name) != p.takes.end(), ErrorKind::type,
        fmt::format(
            "{}: takes no argument '{}'; it takes {}", p.class_name, name,
            p.takes.empty() ? "none" : fmt::format("{}", fmt::join(p.takes, ", "))));
  Algorithm a = p.make(args);
  a.name = p.class_name;
  return a;
}

std::string normalized(std::string_view name) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)); };
  while (!name.empty() && blank(name.front())) name.remove_prefix(1);
  while (!name.empty() && blank(name.back())) name.remove_suffix(1);
  std::string s(name);
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

SmoothingFactor factor_from_json(const json& j) {
  if (j.is_boolean()) return SmoothingFactor(j.get<bool>() ? 1 : 0);
  if (j.is_number_integer()) return SmoothingFactor(j.get<std::int64_t>());
  BT_REQUIRE(
      j.is_number_float(),
      fmt::format("decay_or_rank: must be a decay, a rank or an (x, f) pair, got {}",
                  j.dump()));
  return SmoothingFactor(j.get<double>());
}

DecayOrRank decay_or_rank_from_json(const json& j) {
  if (!j.is_array()) return {factor_from_json(j), factor_from_json(j)};
  BT_REQUIRE(j.size() == 2,
             fmt::format("decay_or_rank: a pair must have 2 entries, got {}", j.size()));
  return {factor_from_json(j[0]), factor_from_json(j[1])};
}

DType dtype_argument(const json& j) {
  constexpr std::pair<std::string_view, std::string_view> long_names[] = {
      {"bfloat16", "bf16"}, {"float32", "f32"}, {"float64", "f64"}};
  const std::string text = json_text("trace_dtype", j);
  std::string_view name = text;
  for (const auto& [long_name, own] : long_names)
    if (long_name == text) name = own;
  const auto d = dtype_from_string(name);
  BT_REQUIRE_KIND(d, ErrorKind::type,
                  fmt::format("trace_dtype: must be f32, f64 or bf16, got '{}'", text));
  return *d;
}

ControlFlowPolicy read_policy(const json& j, ControlFlowPolicy p) {
  check_keys("control_flow", j,
             {"cond", "scan_unroll_limit", "while_hidden", "etp_in_control_flow",
              "scan_descent", "fixpoint_iteration_limit"});
  for (const auto& [name, v] : j.items()) {
    const std::string where = "control_flow: " + name;
    if (name == "cond") p.cond = json_text(where, v);
    if (name == "scan_unroll_limit") p.scan_unroll_limit = json_integer(where, v);
    if (name == "while_hidden") p.while_hidden = json_text(where, v);
    if (name == "etp_in_control_flow") p.etp_in_control_flow = json_text(where, v);
    if (name == "scan_descent") p.scan_descent = json_text(where, v);
    if (name == "fixpoint_iteration_limit")
      p.fixpoint_iteration_limit = json_integer(where, v);
  }
  validate(p);
  return p;
}

void read_argument(Args& a, const std::string& name, const json& v) {
  const auto integer = [&] { return json_integer(name, v); };
  const auto key = [&] { return static_cast<std::uint64_t>(json_integer(name, v)); };
  if (v.is_null() || name == "fast_solve" || name == "chunked_trace") return;
  if (name == "decay_or_rank") {
    a.decay_or_rank = decay_or_rank_from_json(v);
  } else if (name == "n") {
    a.n = integer();
  } else if (name == "feedback") {
    a.feedback = json_text(name, v);
  } else if (name == "kappa_filter_decay") {
    a.kappa_filter_decay = json_number(name, v);
  } else if (name == "random_feedback_key") {
    a.random_feedback_key = key();
  } else if (name == "projection_key") {
    a.projection_key = key();
  } else if (name == "projection_eps") {
    a.projection_eps = json_number(name, v);
  } else if (name == "snap_max_jacobian_elements") {
    a.snap_max_jacobian_elements = integer();
  } else if (name == "segments") {
    a.segments = integer();
  } else if (name == "trace_dtype") {
    a.trace_dtype = dtype_argument(v);
  } else if (name == "name") {
    json_text(name, v);
  } else if (name == "control_flow") {
    read_policy(v, {});
  } else if (name == "config") {
    a.config = config_from_json(v);
  } else if (name == "vjp_method") {
    a.vjp_method = vjp_method_from_string(json_text(name, v));
  } else {
    throw UserError(ErrorKind::type,
                    fmt::format("algorithm_from_json: no argument '{}'", name));
  }
}

}  // namespace

namespace {

// Names of the reference's base classes.
std::string_view preset_class(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"ParamDimVjpAlgorithm", "D_RTRL"},
      {"IODimVjpAlgorithm", "pp_prop"},
      {"HybridDimVjpAlgorithm", "Hybrid"},
      {"ParamDim", "D_RTRL"},
      {"IODim", "pp_prop"},
      {"RandomProjection", "UORO"},
  };
  for (const auto& [other, own] : others)
    if (other == name) return own;
  return name;
}

}  // namespace

Algorithm algorithm_by_name(std::string_view name, const AlgorithmArgs& args) {
  const std::string wanted = normalized(name);
  for (const Preset& p : presets())
    if (std::find(p.names.begin(), p.names.end(), wanted) != p.names.end())
      return make(p, args);
  throw UserError(fmt::format("algorithm_by_name: no algorithm '{}'; there are {}", name,
                              fmt::join(algorithm_names(), ", ")));
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> all;
  for (const Preset& p : presets()) all.insert(all.end(), p.names.begin(), p.names.end());
  return all;
}

Algorithm algorithm_from_json(const std::string& text) {
  const json j = json::parse(text, nullptr, false);
  BT_REQUIRE(j.is_object() && j.contains("class"),
             "algorithm_from_json: must be a JSON object with a 'class'");
  const std::string wanted = json_text("algorithm_from_json: class", j["class"]);
  Args args;
  if (j.contains("args"))
    for (const auto& [name, value] : j["args"].items()) read_argument(args, name, value);
  // BPTT has but one method.
  if (const auto it = j.find("vjp_method"); it != j.end() && wanted != "BPTT")
    read_argument(args, "vjp_method", *it);
  for (const Preset& p : presets())
    if (p.class_name == preset_class(wanted)) return make(p, args);
  throw UserError(fmt::format("algorithm_from_json: no class '{}'", wanted));
}

ControlFlowPolicy control_flow_from_json(const std::string& text,
                                         ControlFlowPolicy base) {
  const json j = json::parse(text, nullptr, false);
  BT_REQUIRE(j.is_object(), "control_flow_from_json: must be a JSON object");
  const json args = j.value("args", json::object());
  const auto it = args.find("control_flow");
  return it == args.end() || it->is_null() ? base : read_policy(*it, std::move(base));
}

}  // namespace braintrace
