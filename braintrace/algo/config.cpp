// SPDX-License-Identifier: Apache-2.0
// Canonical form and compatibility rules of learning-rule coordinates.
#include "braintrace/algo/config.h"

#include <fmt/format.h>

#include "braintrace/algo/config_names_impl.h"
#include "braintrace/base/error.h"

namespace braintrace {
namespace {

using enum TraceFactorization;
using Fields = ETraceConfigFields;

bool is_io(const Fields& f) { return f.trace_factorization == io_factorized; }

[[noreturn]] void refuse(int rule, const std::string& what) {
  throw UserError(fmt::format("ETraceConfig: {} (rule {})", what, rule));
}

// --- canonical form -------------------------------------------------------------------

void check_coefficient(std::string_view name, std::optional<double> v) {
  BT_REQUIRE(!v || (*v >= 0 && *v < 1),
             fmt::format("ETraceConfig: {} must be in [0, 1), got {}", name, *v));
}

void check_vocabulary(const Fields& f) {
  check_name(f.trace_factorization);
  check_name(f.temporal_recursion.x);
  check_name(f.temporal_recursion.f);
  check_name(f.recurrence_scope);
  check_name(f.learning_signal);
  check_name(f.trace_filter);
  check_name(f.update_schedule);
  check_coefficient("decay", f.decay.x);
  check_coefficient("decay", f.decay.f);
  check_coefficient("kappa", f.kappa);
  BT_REQUIRE(!f.sparse_n || *f.sparse_n >= 1,
             fmt::format("ETraceConfig: sparse_n must be >= 1, got {}", *f.sparse_n));
}

// Recursion and decay of one side (or of the whole trace).
void canonicalize_side(TemporalRecursion& recursion, std::optional<double>& decay) {
  if (recursion == TemporalRecursion::scalar_leak && decay == 0.0)
    recursion = TemporalRecursion::none;
  if (recursion != TemporalRecursion::none) return;
  BT_REQUIRE(!decay || *decay == 0,
             fmt::format("ETraceConfig: temporal_recursion none takes no decay, got {}",
                         *decay));
  decay = 0.0;
}

void canonicalize_pair(Recursion& recursion, Decay& decay) {
  if (!recursion.is_pair && recursion.f == TemporalRecursion::jacobian)
    recursion.x = TemporalRecursion::scalar_leak;  // an input has no Jacobian
  recursion.is_pair = true;
  if (decay.x == 0.0) recursion.x = TemporalRecursion::none;
  if (decay.f == 0.0) recursion.f = TemporalRecursion::none;
  canonicalize_side(recursion.x, decay.x);
  canonicalize_side(recursion.f, decay.f);
  decay.is_pair = decay.x || decay.f;
}

void canonicalize_scalar(Recursion& recursion, Decay& decay) {
  BT_REQUIRE(!recursion.is_pair && !decay.is_pair,
             "ETraceConfig: an (x, f) pair needs trace_factorization io_factorized");
  canonicalize_side(recursion.x, decay.x);
  recursion.f = recursion.x;
  decay.f = decay.x;
}

Fields canonicalize(Fields f) {
  if (is_io(f))
    canonicalize_pair(f.temporal_recursion, f.decay);
  else
    canonicalize_scalar(f.temporal_recursion, f.decay);
  if (f.recurrence_scope == RecurrenceScope::sparse_n && f.sparse_n == 1) {
    f.recurrence_scope = RecurrenceScope::coupled;
    f.sparse_n.reset();
  }
  if (f.trace_filter == TraceFilter::kappa && f.kappa == 0.0) {
    f.trace_filter = TraceFilter::none;
    f.kappa.reset();
  }
  return f;
}

// --- rules, on canonical fields -------------------------------------------------------

void rule_1(const Fields& f) {
  if (f.trace_filter == TraceFilter::kappa && f.trace_factorization != per_param)
    refuse(1, fmt::format("trace_filter kappa needs per_param, got {}",
                          to_string(f.trace_factorization)));
}

void rule_2(const Fields& f) {
  const TemporalRecursion consumer = f.temporal_recursion.f;
  if (f.recurrence_scope != RecurrenceScope::diagonal &&
      consumer != TemporalRecursion::jacobian)
    refuse(2,
           fmt::format("recurrence_scope {} needs temporal_recursion jacobian{}, got {}",
                       to_string(f.recurrence_scope), is_io(f) ? " on the f side" : "",
                       to_string(consumer)));
}

void rule_3(const Fields& f) {
  if (is_io(f) && f.temporal_recursion.x == TemporalRecursion::jacobian)
    refuse(3, "the x side of temporal_recursion cannot be jacobian");
}

void rule_4(const Fields& f) {
  if (!is_io(f) && f.temporal_recursion.f == TemporalRecursion::jacobian &&
      f.decay.is_given())
    refuse(4, fmt::format("{} with temporal_recursion jacobian takes no decay, got {}",
                          to_string(f.trace_factorization), *f.decay.x));
}

void rule_5(const Fields& f) {
  const auto lacks = [](TemporalRecursion r, std::optional<double> decay) {
    return r == TemporalRecursion::scalar_leak && !decay;
  };
  if (lacks(f.temporal_recursion.x, f.decay.x) ||
      lacks(f.temporal_recursion.f, f.decay.f))
    refuse(5, "temporal_recursion scalar_leak needs a decay");
}

void rule_6(const Fields& f) {
  if (is_io(f) && (!f.decay.x || !f.decay.f))
    refuse(6, "io_factorized needs a decay for both sides");
}

// A coefficient and its category come together.
void rule_7_together(bool category, std::string_view category_name, bool coefficient,
                     std::string_view name) {
  if (category && !coefficient)
    refuse(7, fmt::format("{} needs {}", category_name, name));
  if (coefficient && !category)
    refuse(7, fmt::format("{} is given without {}", name, category_name));
}

void rule_7(const Fields& f) {
  rule_7_together(f.trace_filter == TraceFilter::kappa, "trace_filter kappa",
                  f.kappa.has_value(), "kappa");
  rule_7_together(f.recurrence_scope == RecurrenceScope::sparse_n,
                  "recurrence_scope sparse_n", f.sparse_n.has_value(), "sparse_n");
  rule_7_together(f.update_schedule == UpdateSchedule::window, "update_schedule window",
                  f.window_size.has_value(), "window_size");
}

void rule_8(const Fields& f) {
  if (f.update_schedule != UpdateSchedule::per_step)
    refuse(8, fmt::format("update_schedule {} is known but not implemented; use per_step",
                          to_string(f.update_schedule)));
}

void rule_9(const Fields& f) {
  if (f.recurrence_scope == RecurrenceScope::sparse_n &&
      f.trace_factorization != per_param)
    refuse(9, fmt::format("recurrence_scope sparse_n needs per_param, got {}",
                          to_string(f.trace_factorization)));
}

void rule_11(const Fields& f) {
  if (f.trace_factorization == random_projection &&
      f.recurrence_scope != RecurrenceScope::coupled)
    refuse(11, fmt::format("random_projection needs recurrence_scope coupled, got {}",
                           to_string(f.recurrence_scope)));
}

}  // namespace

ETraceConfig ETraceConfig::make(const ETraceConfigFields& fields) {
  check_vocabulary(fields);
  ETraceConfig c;
  c.f_ = canonicalize(fields);
  for (auto* rule :
       {rule_8, rule_1, rule_2, rule_3, rule_4, rule_5, rule_6, rule_7, rule_11, rule_9})
    rule(c.f_);
  BT_INVARIANT(!c.f_.sparse_n || *c.f_.sparse_n >= 2);  // rule 10, by canonical form
  return c;
}

ETraceConfig ETraceConfig::replace(
    const std::function<void(ETraceConfigFields&)>& change) const {
  ETraceConfigFields f = f_;
  change(f);
  return make(f);
}

}  // namespace braintrace
