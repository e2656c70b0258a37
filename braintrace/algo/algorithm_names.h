// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning rules by name, with arguments by name: what programs, files and bindings use.
#include <vector>

#include "braintrace/algo/algorithm.h"
#include "braintrace/etrace/options.h"

namespace braintrace {

// Arguments of a preset; those not given keep the preset's default.
struct AlgorithmArgs {
  DecayOrRank decay_or_rank = {};
  std::optional<std::int64_t> n = {};
  std::optional<std::string> feedback = {};
  std::optional<double> kappa_filter_decay = {};
  std::optional<std::uint64_t> random_feedback_key = {};
  std::optional<std::uint64_t> projection_key = {};
  std::optional<double> projection_eps = {};
  std::optional<std::int64_t> snap_max_jacobian_elements = {};
  std::optional<DType> trace_dtype = {};
  std::optional<std::int64_t> segments = {};
  std::optional<ETraceConfig> config = {};
  std::optional<VjpMethod> vjp_method = {};
};

// "d_rtrl", " PP_Prop ": case and outer blanks do not matter. UserError lists the names;
// UserError of kind type names an argument the preset does not take.
Algorithm algorithm_by_name(std::string_view name, const AlgorithmArgs& args = {});
std::vector<std::string> algorithm_names();

// From the object recorded runs hold: {"class": "SnAp", "args": {"n": 2}, "vjp_method":
// "single-step"}. Class names are the presets' ("ETraceConfig" with args.config);
// whatever else the object holds is not read. fast_solve and chunked_trace are accepted
// and ignored: they choose kernels in the reference, not numbers. So is name, a label.
// control_flow is checked here and read by control_flow_from_json.
Algorithm algorithm_from_json(const std::string& text);

// `base` with what args.control_flow of the same object names: {"scan_unroll_limit": 4}.
ControlFlowPolicy control_flow_from_json(const std::string& text, ControlFlowPolicy base);

}  // namespace braintrace
