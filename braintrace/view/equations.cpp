// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/equations.h"

#include <fmt/format.h>

namespace braintrace {
namespace {

std::string number(double v) { return fmt::format("{:.4g}", v); }

// What carries a trace of one value per weight entry.
std::string carrier(const ETraceConfig& c) {
  switch (c.temporal_recursion().x) {
    case TemporalRecursion::jacobian:
      return "D_t ε_{t-1}";
    case TemporalRecursion::scalar_leak:
      return number(c.decay().x.value_or(0)) + " ε_{t-1}";
    case TemporalRecursion::none:
      return "";
  }
  return "";
}

struct Formulas {
  std::vector<std::string> recursion;
  std::string gradient;
};

std::string joined(const std::string& carried, const std::string& fresh) {
  return carried.empty() ? fresh : carried + " + " + fresh;
}

Formulas per_param(const ETraceConfig& c) {
  Formulas f;
  const std::string carried = carrier(c);
  f.recursion = {"ε_t = " + joined(carried, "df_t ⊗ x_t")};
  std::string past = carried.empty() ? "" : fmt::format("s_t · ({})", carried);
  if (c.trace_filter() == TraceFilter::kappa) {
    const std::string kappa = number(c.kappa().value_or(0));
    f.recursion.push_back(fmt::format("F_t = {} F_{{t-1}} + ε_t", kappa));
    past = fmt::format("s_t · ({} + {} F_{{t-1}})", carried, kappa);
  }
  f.gradient = joined("∂L_t/∂W", past.empty() ? "0" : past);
  if (c.learning_signal() == LearningSignal::random_feedback ||
      c.learning_signal() == LearningSignal::modulatory)
    f.gradient = "s_t · ε_t";
  return f;
}

Formulas factorized(const Algorithm& a) {
  const ETraceConfig& c = a.config;
  const std::string x = number(c.decay().x.value_or(0)),
                    f = number(c.decay().f.value_or(0));
  return {{fmt::format("X_t = {} X_{{t-1}} + x_t", x),
           fmt::format("f_t = {0} D_t f_{{t-1}} + (1 - {0}) df_t", f)},
          fmt::format("∂L_t/∂W + (s_t · f_t / c) ⊗ X_t - ((1 - {}) / c) (s_t · df_t) ⊗ "
                      "x_t",
                      f)};
}

Formulas projected() {
  return {{"σ_t = ρ_0 J_t σ_{t-1} + ρ_1 ν_t", "θ_t = θ_{t-1} / ρ_0 + (ν_t · F_t) / ρ_1"},
          "∂L_t/∂W + (s_t · J_t σ_{t-1}) θ_{t-1}"};
}

Formulas dense() {
  return {{"ε_t = J_t ε_{t-1} + ∂h_t/∂W  (every weight entry x every hidden value)"},
          "∂L_t/∂W + s_t · (J_t ε_{t-1})"};
}

Formulas formulas_of(const Algorithm& a, bool is_dense) {
  if (is_dense || a.engine == Engine::exact_rtrl) return dense();
  switch (a.config.trace_factorization()) {
    case TraceFactorization::per_param:
      return per_param(a.config);
    case TraceFactorization::io_factorized:
      return factorized(a);
    case TraceFactorization::random_projection:
      return projected();
  }
  return {};
}

}  // namespace

std::vector<RelationEquations> update_equations(const ETraceGraph& g,
                                                const Algorithm& algorithm) {
  std::vector<RelationEquations> out;
  if (algorithm.engine == Engine::bptt) return out;
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    const bool is_dense = r.kind == RelationKind::dense;
    Formulas f = formulas_of(algorithm, is_dense);
    out.push_back({to_slashes(r.path()), r.primitive, is_dense ? "dense" : "direct",
                   std::move(f.recursion), std::move(f.gradient)});
  }
  return out;
}

std::vector<std::string> equation_legend(const Algorithm& a) {
  if (a.engine == Engine::bptt)
    return {"no traces: the gradient is taken backwards through the whole sequence"};
  std::vector<std::string> out = {
      "x_t: input of the op; df_t = ∂h_t/∂y_t: from the op's output to the hidden state",
      "s_t: what the loss sends to the hidden state at this step",
      "∂L_t/∂W: gradient of the newest step, exact for every path within it"};
  switch (a.config.recurrence_scope()) {
    case RecurrenceScope::diagonal:
      out.push_back("D_t = ∂h_t/∂h_{t-1}, position by position, cut at mixing ops");
      break;
    case RecurrenceScope::coupled:
      out.push_back("D_t: own-position blocks of the whole ∂h_t/∂h_{t-1}");
      break;
    case RecurrenceScope::sparse_n:
      out.push_back(
          fmt::format("D_t: ∂h_t/∂h_{{t-1}} over the positions reached within "
                      "{} steps",
                      a.config.sparse_n().value_or(0)));
      break;
  }
  if (a.config.trace_factorization() == TraceFactorization::io_factorized)
    out.push_back("c: bias correction of the smoothed factors");
  if (a.engine == Engine::hybrid)
    out.push_back("hybrid: each relation keeps the smaller of ε and (X, f)");
  if (a.config.learning_signal() == LearningSignal::random_feedback)
    out.push_back("s_t arrives through a fixed random matrix");
  if (a.config.learning_signal() == LearningSignal::modulatory)
    out.push_back("s_t is a modulator given from outside");
  return out;
}

}  // namespace braintrace
