// SPDX-License-Identifier: Apache-2.0
#pragma once
// ETraceConfig: a learning rule as a point on six axes (docs/config.md). An immutable
// record: canonical, checked against the compatibility rules, equal by value.
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace braintrace {

struct Algorithm;

// What a trace stores: a value per weight entry, an input and an output factor, or two
// random projections.
enum class TraceFactorization { per_param, io_factorized, random_projection };
// What carries a trace from step to step: D, a constant leak, or nothing.
enum class TemporalRecursion { jacobian, scalar_leak, none };
// Which part of the Jacobian counts as D: without recurrent mixing, the own-position
// blocks of all of it, or the blocks of the positions reached within sparse_n steps.
enum class RecurrenceScope { diagonal, coupled, sparse_n };
// What meets the trace: dL/dh, its image under a fixed random matrix, a modulator, or
// dL/dh with a predicted future.
enum class LearningSignal { symmetric, random_feedback, modulatory, bootstrapped };
enum class TraceFilter { none, kappa };
enum class UpdateSchedule { per_step, window, sequence_end };

std::string_view to_string(TraceFactorization v);
std::string_view to_string(TemporalRecursion v);
std::string_view to_string(RecurrenceScope v);
std::string_view to_string(LearningSignal v);
std::string_view to_string(TraceFilter v);
std::string_view to_string(UpdateSchedule v);

// One recursion for the trace, or one per factor (x side, f side).
struct Recursion {
  TemporalRecursion x = TemporalRecursion::jacobian, f = TemporalRecursion::jacobian;
  bool is_pair = false;

  Recursion() = default;
  Recursion(TemporalRecursion both) : x(both), f(both) {}  // NOLINT: written as a value
  Recursion(TemporalRecursion x_side, TemporalRecursion f_side)
      : x(x_side), f(f_side), is_pair(true) {}
  friend bool operator==(const Recursion&, const Recursion&) = default;
};

// Leak coefficients in [0, 1): not given, one for the trace, or one per factor.
struct Decay {
  std::optional<double> x = {}, f = {};
  bool is_pair = false;

  Decay() = default;
  template <class T>
  requires(std::floating_point<T> || (std::integral<T> && !std::same_as<T, bool>))
      Decay(T both)  // NOLINT: written as a value
      : x(static_cast<double>(both)), f(x) {}
  Decay(std::optional<double> x_side, std::optional<double> f_side)
      : x(x_side), f(f_side), is_pair(true) {}
  bool is_given() const { return is_pair || x.has_value(); }
  friend bool operator==(const Decay&, const Decay&) = default;
};

struct ETraceConfigFields {
  TraceFactorization trace_factorization = TraceFactorization::per_param;
  Recursion temporal_recursion = {};
  RecurrenceScope recurrence_scope = RecurrenceScope::diagonal;
  LearningSignal learning_signal = LearningSignal::symmetric;
  TraceFilter trace_filter = TraceFilter::none;
  UpdateSchedule update_schedule = UpdateSchedule::per_step;
  Decay decay = {};
  std::optional<double> kappa = {};
  std::optional<std::int64_t> sparse_n = {};
  std::optional<std::int64_t> window_size = {};
  friend bool operator==(const ETraceConfigFields&, const ETraceConfigFields&) = default;
};

class ETraceConfig {
 public:
  ETraceConfig() = default;  // D_RTRL

  // Canonical form (docs/config.md): under io_factorized recursion and
  // decay are pairs, a zero leak is `none`, sparse_n = 1 is coupled, kappa = 0 is no
  // filter. UserError names the broken rule and the value.
  static ETraceConfig make(const ETraceConfigFields& fields);
  // From a JSON object with the names of the fields; absent or null = default. UserError
  // of kind type for a value of the wrong type.
  static ETraceConfig from_json(const std::string& text);

  TraceFactorization trace_factorization() const { return f_.trace_factorization; }
  const Recursion& temporal_recursion() const { return f_.temporal_recursion; }
  RecurrenceScope recurrence_scope() const { return f_.recurrence_scope; }
  LearningSignal learning_signal() const { return f_.learning_signal; }
  TraceFilter trace_filter() const { return f_.trace_filter; }
  UpdateSchedule update_schedule() const { return f_.update_schedule; }
  const Decay& decay() const { return f_.decay; }
  std::optional<double> kappa() const { return f_.kappa; }
  std::optional<std::int64_t> sparse_n() const { return f_.sparse_n; }
  const ETraceConfigFields& fields() const { return f_; }

  // A changed copy, checked again.
  ETraceConfig replace(const std::function<void(ETraceConfigFields&)>& change) const;
  // "ETraceConfig(recurrence_scope=coupled)": what is not default.
  std::string describe() const;
  // Every axis and coefficient, keys sorted.
  std::string to_json() const;

  // algorithm_from_config with default options.
  operator Algorithm() const;  // NOLINT: a config is one way to write an algorithm

  friend bool operator==(const ETraceConfig&, const ETraceConfig&) = default;

 private:
  ETraceConfigFields f_;
};

}  // namespace braintrace
