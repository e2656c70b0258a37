// SPDX-License-Identifier: Apache-2.0
// Presets of learning rules and the checks every algorithm passes.
#include "braintrace/algo/algorithm.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace {
namespace {

Engine engine_of(TraceFactorization f) {
  switch (f) {
    case TraceFactorization::per_param:
      return Engine::param_dim;
    case TraceFactorization::io_factorized:
      return Engine::io_dim;
    case TraceFactorization::random_projection:
      return Engine::random_projection;
  }
  fail_invariant("engine_of", __FILE__, __LINE__);
}

void check_engine(const Algorithm& a) {
  const TraceFactorization f = a.config.trace_factorization();
  const bool follows = a.engine == Engine::param_dim || a.engine == Engine::io_dim ||
                       a.engine == Engine::random_projection;
  BT_REQUIRE(!follows || a.engine == engine_of(f),
             fmt::format("{}: the config must be of its engine {}, got {}", a.name,
                         to_string(a.engine), to_string(f)));
  BT_REQUIRE((a.engine == Engine::custom) == (a.factory != nullptr),
             fmt::format("{}: a factory makes the rule of the custom engine and of no "
                         "other, got the engine {}",
                         a.name, to_string(a.engine)));
}

void check_signal(const Algorithm& a) {
  const LearningSignal s = a.config.learning_signal();
  BT_REQUIRE(s != LearningSignal::modulatory || a.vjp_method == VjpMethod::single_step,
             fmt::format("{}: a modulatory signal needs vjp_method single-step, got {}",
                         a.name, to_string(a.vjp_method)));
  BT_REQUIRE(s != LearningSignal::random_feedback || a.options.random_feedback_key,
             fmt::format("{}: random feedback needs random_feedback_key", a.name));
  BT_REQUIRE_KIND(s != LearningSignal::bootstrapped || a.options.takes_synthesizer,
                  ErrorKind::not_implemented,
                  fmt::format("{}: only DNI takes a bootstrapped signal", a.name));
}

void require_decay(const char* name, const DecayOrRank& d) {
  BT_REQUIRE_KIND(d.sides, ErrorKind::type,
                  fmt::format("{}: decay_or_rank must be given", name));
}

ETraceConfig io_config(const DecayOrRank& d) {
  return ETraceConfig::make({.trace_factorization = TraceFactorization::io_factorized,
                             .decay = {d.sides->first, d.sides->second}});
}

ETraceConfig signal_config(LearningSignal s) {
  return ETraceConfig::make({.learning_signal = s});
}

ETraceConfig eprop_config(const EProp& p) {
  BT_REQUIRE(
      p.feedback == "symmetric" || p.feedback == "random",
      fmt::format("EProp: feedback must be symmetric or random, got '{}'", p.feedback));
  const double kappa = p.kappa_filter_decay;
  BT_REQUIRE(kappa >= 0 && kappa < 1,
             fmt::format("EProp: kappa_filter_decay must be in [0, 1), got {}", kappa));
  return ETraceConfig::make({.learning_signal = p.feedback == "random"
                                                    ? LearningSignal::random_feedback
                                                    : LearningSignal::symmetric,
                             .trace_filter = TraceFilter::kappa,
                             .kappa = kappa});
}

}  // namespace

std::string_view to_string(VjpMethod m) {
  return m == VjpMethod::single_step ? "single-step" : "multi-step";
}

VjpMethod vjp_method_from_string(std::string_view s) {
  if (s == "single-step") return VjpMethod::single_step;
  if (s == "multi-step") return VjpMethod::multi_step;
  throw UserError(
      fmt::format("vjp_method: must be single-step or multi-step, got '{}'", s));
}

std::string_view to_string(Engine e) {
  constexpr std::string_view names[] = {"per_param", "io_factorized", "random_projection",
                                        "hybrid",    "exact_rtrl",    "bptt",
                                        "custom"};
  return names[static_cast<std::size_t>(e)];
}

SmoothingFactor::SmoothingFactor(double decay) : value(decay) {
  BT_REQUIRE(decay >= 0 && decay < 1,
             fmt::format("decay_or_rank: a decay must be in [0, 1), got {}", decay));
}

double SmoothingFactor::decay_of_rank(std::int64_t rank) {
  BT_REQUIRE(rank > 0, fmt::format("decay_or_rank: a rank must be > 0, got {}", rank));
  const auto r = static_cast<double>(rank);
  return (r - 1) / (r + 1);
}

std::int64_t rank_of_decay(double decay) { return std::llround(2 / (1 - decay) - 1); }

double Algorithm::decay() const {
  const Decay& d = config.decay();
  BT_REQUIRE(d.is_pair && d.x == d.f,
             fmt::format("{}: decay needs two equal smoothing factors, got {}", name,
                         config.describe()));
  return *d.f;
}

std::int64_t Algorithm::rank() const { return rank_of_decay(decay()); }

std::int64_t steps_per_segment(std::int64_t segments, std::int64_t steps) {
  if (segments == kAutomaticSegments)
    segments =
        static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(steps))));
  segments = std::clamp<std::int64_t>(segments, 1, steps);
  return (steps + segments - 1) / segments;
}

Algorithm checked(Algorithm a) {
  check_engine(a);
  check_signal(a);
  const double eps = a.options.projection_eps;
  BT_REQUIRE(static_cast<float>(eps) > 0 && std::isfinite(eps),
             fmt::format("{}: projection_eps must be > 0 in f32, got {}", a.name, eps));
  BT_REQUIRE(a.options.snap_max_jacobian_elements > 0,
             fmt::format("{}: snap_max_jacobian_elements must be > 0, got {}", a.name,
                         a.options.snap_max_jacobian_elements));
  BT_REQUIRE(a.options.bptt_segments >= 0,
             fmt::format("{}: segments must be >= 1, or 0 for automatic, got {}", a.name,
                         a.options.bptt_segments));
  const auto dtype = a.options.trace_dtype;
  BT_REQUIRE_KIND(!dtype || is_float(*dtype) || *dtype == DType::bf16, ErrorKind::type,
                  fmt::format("{}: trace_dtype must be f32, f64 or bf16, got {}", a.name,
                              to_string(*dtype)));
  if (a.config.sparse_n()) a.options.needs_anchors = true;
  return a;
}

Algorithm algorithm_from_config(const ETraceConfig& config,
                                const AlgorithmOptions& options,
                                std::optional<VjpMethod> vjp_method) {
  const Engine engine = engine_of(config.trace_factorization());
  const VjpMethod usual = engine == Engine::random_projection ? VjpMethod::multi_step
                                                              : VjpMethod::single_step;
  return checked({.name = "ETraceConfig",
                  .config = config,
                  .engine = engine,
                  .vjp_method = vjp_method.value_or(usual),
                  .options = options});
}

Algorithm custom_algorithm(std::string name, RuleFactory factory,
                           const ETraceConfig& config, VjpMethod vjp_method,
                           AlgorithmOptions options) {
  BT_REQUIRE(factory, fmt::format("custom_algorithm: {} needs a factory", name));
  options.takes_synthesizer = config.learning_signal() == LearningSignal::bootstrapped;
  return checked({.name = std::move(name),
                  .config = config,
                  .engine = Engine::custom,
                  .vjp_method = vjp_method,
                  .options = options,
                  .factory = std::make_shared<const RuleFactory>(std::move(factory))});
}

ETraceConfig::operator Algorithm() const { return algorithm_from_config(*this); }

D_RTRL::operator Algorithm() const {
  return checked({.name = "D_RTRL",
                  .config = config.value_or(ETraceConfig()),
                  .vjp_method = vjp_method,
                  .options = {.random_feedback_key = random_feedback_key,
                              .snap_max_jacobian_elements = snap_max_jacobian_elements,
                              .trace_dtype = trace_dtype}});
}

pp_prop::operator Algorithm() const {
  if (!config) require_decay("pp_prop", decay_or_rank);
  return checked({.name = "pp_prop",
                  .config = config ? *config : io_config(decay_or_rank),
                  .engine = Engine::io_dim,
                  .vjp_method = vjp_method,
                  .options = {.random_feedback_key = random_feedback_key}});
}

EProp::operator Algorithm() const {
  return checked({.name = "EProp",
                  .config = eprop_config(*this),
                  .vjp_method = vjp_method,
                  .options = {.random_feedback_key = random_feedback_key,
                              .trace_dtype = trace_dtype}});
}

OSTLRecurrent::operator Algorithm() const {
  return checked(
      {.name = "OSTLRecurrent",
       .config = ETraceConfig::make({.recurrence_scope = RecurrenceScope::coupled}),
       .vjp_method = vjp_method,
       .options = {.trace_dtype = trace_dtype}});
}

OSTLFeedforward::operator Algorithm() const {
  require_decay("OSTLFeedforward", decay_or_rank);
  return checked({.name = "OSTLFeedforward",
                  .config = io_config(decay_or_rank),
                  .engine = Engine::io_dim,
                  .vjp_method = vjp_method});
}

SnAp::operator Algorithm() const {
  BT_REQUIRE(n >= 1, fmt::format("SnAp: n must be >= 1, got {}", n));
  return checked({.name = "SnAp",
                  .config = ETraceConfig::make(
                      {.recurrence_scope = RecurrenceScope::sparse_n, .sparse_n = n}),
                  .vjp_method = vjp_method,
                  .options = {.snap_max_jacobian_elements = snap_max_jacobian_elements,
                              .needs_anchors = true,
                              .trace_dtype = trace_dtype}});
}

UORO::operator Algorithm() const {
  return checked(
      {.name = "UORO",
       .config = ETraceConfig::make(
           {.trace_factorization = TraceFactorization::random_projection,
            .recurrence_scope = RecurrenceScope::coupled}),
       .engine = Engine::random_projection,
       .vjp_method = vjp_method,
       .options = {.projection_key = projection_key, .projection_eps = projection_eps}});
}

ThreeFactor::operator Algorithm() const {
  return checked({.name = "ThreeFactor",
                  .config = signal_config(LearningSignal::modulatory),
                  .vjp_method = vjp_method,
                  .options = {.trace_dtype = trace_dtype}});
}

DNI::operator Algorithm() const {
  return checked({.name = "DNI",
                  .config = signal_config(LearningSignal::bootstrapped),
                  .vjp_method = vjp_method,
                  .options = {.takes_synthesizer = true, .trace_dtype = trace_dtype}});
}

Hybrid::operator Algorithm() const {
  require_decay("Hybrid", decay_or_rank);
  return checked({.name = "Hybrid",
                  .config = io_config(decay_or_rank),
                  .engine = Engine::hybrid,
                  .vjp_method = vjp_method});
}

ExactRTRL::operator Algorithm() const {
  return checked(
      {.name = "ExactRTRL", .engine = Engine::exact_rtrl, .vjp_method = vjp_method});
}

BPTT::operator Algorithm() const {
  return checked({.name = "BPTT",
                  .engine = Engine::bptt,
                  .vjp_method = VjpMethod::multi_step,
                  .options = {.bptt_segments = segments}});
}

}  // namespace braintrace
