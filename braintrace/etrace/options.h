// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the compiler can be asked for. Every difference from braintrace 0.2.6 is one named
// option here; `compat()` is nothing but a preset of them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braintrace {

// How structured control flow is treated (values checked at construction).
struct ControlFlowPolicy {
  std::string cond = "convert";             // or "opaque"
  std::int64_t scan_unroll_limit = 16;      // <= 0 disables unrolling
  std::string while_hidden = "opaque-fwd";  // or "error"
  // Weights and trainable ops in loops and branches that are not opened: the gradient of
  // the current step only. "error" refuses both, "exclude" the weights alone.
  std::string etp_in_control_flow = "local";
  std::string scan_descent = "auto";           // or "off"
  std::int64_t fixpoint_iteration_limit = 64;  // nesting depth bound

  friend bool operator==(const ControlFlowPolicy&, const ControlFlowPolicy&) = default;
};
// UserError naming the knob, its values and the value found.
void validate(const ControlFlowPolicy& p);

// Weights that reach a hidden state only through other weights or mixing ops.
enum class WeightPaths { automatic, dense, local, exclude };
// Past credit at an op that mixes positions: cut there, or take the reference's sums.
enum class Mixing { cut, sum };
// Group membership by reachability, or with the reference's asymmetry and layer rule.
enum class Grouping { reachable, reference };
// y and hidden state must agree position by position, or broadcast as raw arrays.
enum class ShapeFilter { positions, raw_broadcast };
// WEIGHT_TO_WEIGHT needs a hidden state beyond the other weight, or only that one was
// met.
enum class ExclusionLabel { reachable, met };
// One equation may read two hidden states, or not.
enum class TwoStateEquations { allow, refuse };
enum class OpaqueRecords { once, twice };
// All parameters behind a weight operand, or the first one found.
enum class WeightSource { all, first_found };
enum class OnRefused { fail, freeze };
// While loops whose number of turns constants decide: scans of that length, or as they
// are.
enum class CountedLoops { scan, keep };
// Conservative SnAp patterns stay inside a sample, or widen over every axis.
enum class SnapFallback { per_sample, all_axes };

struct CompileOptions {
  bool include_hidden_perturb = true;
  bool include_recurrent_mixing = false;
  std::optional<std::int64_t> sparse_n = {};
  std::int64_t snap_max_jacobian_elements = std::int64_t{1} << 24;
  ControlFlowPolicy control_flow = {};
  bool batched = false;  // axis 0 of states and inputs is the batch

  WeightPaths weight_paths = WeightPaths::automatic;
  Mixing mixing = Mixing::cut;
  Grouping grouping = Grouping::reachable;
  ShapeFilter shape_filter = ShapeFilter::positions;
  ExclusionLabel exclusion_label = ExclusionLabel::reachable;
  TwoStateEquations two_state_equations = TwoStateEquations::allow;
  OpaqueRecords opaque_records = OpaqueRecords::once;
  WeightSource weight_source = WeightSource::all;
  SnapFallback snap_fallback = SnapFallback::per_sample;
  CountedLoops counted_loops = CountedLoops::scan;
  OnRefused on_refused = OnRefused::fail;
};

// The reference's behaviour, quirks included.
CompileOptions compat(CompileOptions base = {});
// Sets one named option from text, as the program's --set name=value. UserError lists the
// names or the values there are.
void set_option(CompileOptions& options, std::string_view name, std::string_view value);
std::string option_value(const CompileOptions& options, std::string_view name);
std::vector<std::string> option_names();

}  // namespace braintrace
