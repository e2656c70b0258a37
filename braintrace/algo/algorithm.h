// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning rules as values. Users write a preset, `D_RTRL{}` or
// `pp_prop{.decay_or_rank = 0.9}`; each converts to an Algorithm: a checked coordinate
// with its options, which learners compile.
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "braintrace/algo/config.h"
#include "braintrace/array/dtype.h"

namespace braintrace {

// single_step: one step per call, its signal meets the new trace.
// multi_step: windows, exact inside, the entry signal meets the trace before the window.
enum class VjpMethod { single_step, multi_step };
std::string_view to_string(VjpMethod m);               // "single-step", "multi-step"
VjpMethod vjp_method_from_string(std::string_view s);  // UserError lists both

// A smoothing factor in [0, 1), or the rank r > 0 it stands for: (r - 1) / (r + 1).
// UserError on anything else.
struct SmoothingFactor {
  double value = 0;
  SmoothingFactor(double decay);  // NOLINT: written as a value
  template <std::integral I>
  SmoothingFactor(I rank)  // NOLINT: written as a value
      : value(decay_of_rank(static_cast<std::int64_t>(rank))) {}
  static double decay_of_rank(std::int64_t rank);
};
// The rank a factor is reported as: 2 / (1 - decay) - 1, rounded.
std::int64_t rank_of_decay(double decay);

// Not given, one factor for both sides, or an (x side, f side) pair.
struct DecayOrRank {
  std::optional<std::pair<double, double>> sides = {};
  DecayOrRank() = default;
  DecayOrRank(double decay)  // NOLINT: written as a value
      : DecayOrRank(SmoothingFactor(decay), SmoothingFactor(decay)) {}
  template <std::integral I>
  DecayOrRank(I rank)  // NOLINT: written as a value
      : DecayOrRank(SmoothingFactor(rank), SmoothingFactor(rank)) {}
  DecayOrRank(SmoothingFactor x, SmoothingFactor f) : sides({x.value, f.value}) {}
};

// Who runs an algorithm. The first three follow the factorization of the config.
enum class Engine {
  param_dim,
  io_dim,
  random_projection,
  hybrid,      // per relation the smaller of param_dim and io_dim
  exact_rtrl,  // full sensitivities
  bptt,        // no traces: reverse mode over the whole window
  custom       // a rule from outside the library
};
std::string_view to_string(Engine e);

// BPTT: as many segments as the square root of the number of steps.
inline constexpr std::int64_t kAutomaticSegments = 0;

// How many steps each of them takes: the last one may be shorter.
std::int64_t steps_per_segment(std::int64_t segments, std::int64_t steps);

struct AlgorithmOptions {
  std::optional<std::uint64_t> random_feedback_key = {};
  std::uint64_t projection_key = 42;
  double projection_eps = 1e-12;
  std::int64_t snap_max_jacobian_elements = std::int64_t{1} << 24;
  bool needs_anchors = false;      // SnAp: every traced op has one anchor per entry
  bool takes_synthesizer = false;  // DNI: a predicted gradient enters at window exits
  std::optional<DType> trace_dtype = {};  // storage; absent = that of the operands
  std::int64_t bptt_segments = 1;         // or kAutomaticSegments
  friend bool operator==(const AlgorithmOptions&, const AlgorithmOptions&) = default;
};

class LearningRule;
class RuleContext;
// Makes a rule for a compiled graph (docs/adding_an_algorithm.md).
using RuleFactory = std::function<std::unique_ptr<LearningRule>(const RuleContext&)>;

struct Algorithm {
  std::string name;  // of the preset: "D_RTRL"
  ETraceConfig config = {};
  Engine engine = Engine::param_dim;
  VjpMethod vjp_method = VjpMethod::single_step;
  AlgorithmOptions options = {};
  std::shared_ptr<const RuleFactory> factory = {};  // of a custom engine

  // UserError unless both factors smooth alike (io_dim and hybrid).
  double decay() const;
  std::int64_t rank() const;
  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

// Returns `a` if its parts fit together. UserError: engine and factorization differ,
// modulatory with multi-step, random feedback without a key, bootstrapped without a
// synthesizer, projection_eps that is not positive in f32, a trace type that is no float,
// a custom engine without a factory.
Algorithm checked(Algorithm a);

// The engine of the config's factorization; without a method single-step, and multi-step
// for random_projection. Named "ETraceConfig".
Algorithm algorithm_from_config(const ETraceConfig& config,
                                const AlgorithmOptions& options = {},
                                std::optional<VjpMethod> vjp_method = {});

// A rule of your own. Its config says what D, the signal and the recurrence scope are.
Algorithm custom_algorithm(std::string name, RuleFactory factory,
                           const ETraceConfig& config = {},
                           VjpMethod vjp_method = VjpMethod::single_step,
                           AlgorithmOptions options = {});

// eps' = D eps + df (x) x, without recurrent mixing in D.
struct D_RTRL {
  VjpMethod vjp_method = VjpMethod::single_step;
  std::optional<ETraceConfig> config = {};  // any per_param coordinate
  std::optional<std::uint64_t> random_feedback_key = {};
  std::int64_t snap_max_jacobian_elements = std::int64_t{1} << 24;
  std::optional<DType> trace_dtype = {};
  operator Algorithm() const;  // NOLINT: a preset is one way to write an algorithm
};

// Smoothed inputs times smoothed output factors. A config wins over decay_or_rank; one of
// them must be given.
struct pp_prop {
  DecayOrRank decay_or_rank = {};
  VjpMethod vjp_method = VjpMethod::single_step;
  std::optional<ETraceConfig> config = {};  // any io_factorized coordinate
  std::optional<std::uint64_t> random_feedback_key = {};
  operator Algorithm() const;  // NOLINT
};
using ES_D_RTRL = pp_prop;

// D_RTRL with a filtered trace and, with feedback = "random", fixed random feedback.
struct EProp {
  std::string feedback = "symmetric";
  double kappa_filter_decay = 0;  // [0, 1); 0 = no filter
  std::optional<std::uint64_t> random_feedback_key = {};
  VjpMethod vjp_method = VjpMethod::single_step;
  std::optional<DType> trace_dtype = {};
  operator Algorithm() const;  // NOLINT
};

// D_RTRL with the own-position blocks of the whole Jacobian.
struct OSTLRecurrent {
  VjpMethod vjp_method = VjpMethod::single_step;
  std::optional<DType> trace_dtype = {};
  operator Algorithm() const;  // NOLINT
};

// pp_prop that forgets at once; decay 0 has no temporal term at all.
struct OSTLFeedforward {
  DecayOrRank decay_or_rank = 1e-6;
  VjpMethod vjp_method = VjpMethod::single_step;
  operator Algorithm() const;  // NOLINT
};

// D_RTRL over the positions a weight can reach within n steps.
struct SnAp {
  std::int64_t n = 2;
  VjpMethod vjp_method = VjpMethod::single_step;
  std::int64_t snap_max_jacobian_elements = std::int64_t{1} << 24;
  std::optional<DType> trace_dtype = {};
  operator Algorithm() const;  // NOLINT
};

// An unbiased rank-one estimate of the full sensitivities.
struct UORO {
  VjpMethod vjp_method = VjpMethod::multi_step;
  std::uint64_t projection_key = 42;
  double projection_eps = 1e-12;
  operator Algorithm() const;  // NOLINT
};

// D_RTRL whose signal is a modulator given from outside. Single-step only.
struct ThreeFactor {
  VjpMethod vjp_method = VjpMethod::single_step;
  std::optional<DType> trace_dtype = {};
  operator Algorithm() const;  // NOLINT
};

// D_RTRL with a predicted gradient at the end of each window.
struct DNI {
  VjpMethod vjp_method = VjpMethod::multi_step;
  std::optional<DType> trace_dtype = {};
  operator Algorithm() const;  // NOLINT
};

// Per relation D_RTRL or pp_prop, whichever stores less.
struct Hybrid {
  DecayOrRank decay_or_rank = {};  // must be given
  VjpMethod vjp_method = VjpMethod::single_step;
  operator Algorithm() const;  // NOLINT
};

// Full sensitivities, sample by sample. Exact; for small networks.
struct ExactRTRL {
  VjpMethod vjp_method = VjpMethod::single_step;
  operator Algorithm() const;  // NOLINT
};

// Reverse mode through the whole sequence. Exact; memory grows with its length T. With n
// segments only the states at their starts are stored and each segment is run forward a
// second time on the way back: memory T / n + n, the same numbers.
struct BPTT {
  std::int64_t segments = 1;   // or kAutomaticSegments
  operator Algorithm() const;  // NOLINT
};

}  // namespace braintrace
