// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/config.h"

#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/base/error.h"

namespace config_test {

using namespace braintrace;
using enum TraceFactorization;
using R = TemporalRecursion;

namespace {

const Recursion leak_and_jacobian{R::scalar_leak, R::jacobian};

// The message of the refusal; "" when accepted.
std::string refusal(const ETraceConfigFields& f) {
  try {
    ETraceConfig::make(f);
    return "";
  } catch (const UserError& e) {
    CHECK(e.kind() == ErrorKind::value);
    return e.what();
  }
}

ErrorKind kind_of_json(const std::string& text) {
  try {
    ETraceConfig::from_json(text);
  } catch (const UserError& e) {
    return e.kind();
  }
  FAIL("accepted: " << text);
  return {};
}

}  // namespace

TEST_CASE("a config without fields is D_RTRL") {
  const ETraceConfig c = ETraceConfig::make({});
  CHECK(c == ETraceConfig());
  CHECK(c.trace_factorization() == per_param);
  CHECK(c.temporal_recursion() == Recursion(R::jacobian));
  CHECK(c.recurrence_scope() == RecurrenceScope::diagonal);
  CHECK(c.learning_signal() == LearningSignal::symmetric);
  CHECK(c.trace_filter() == TraceFilter::none);
  CHECK(c.update_schedule() == UpdateSchedule::per_step);
  CHECK(!c.decay().is_given());
  CHECK(c.describe() == "ETraceConfig()");
}

// --- canonical form -------------------------------------------------------------------

TEST_CASE("a zero leak is no recursion") {
  const auto c = ETraceConfig::make({.temporal_recursion = R::scalar_leak, .decay = 0.0});
  CHECK(c.temporal_recursion() == Recursion(R::none));
  CHECK(c.decay() == Decay(0.0));
}

TEST_CASE("no recursion gets decay 0 and refuses any other") {
  const auto c = ETraceConfig::make({.temporal_recursion = R::none});
  CHECK(c.decay() == Decay(0));
  CHECK(c == ETraceConfig::make({.temporal_recursion = R::none, .decay = 0.0}));
  CHECK(refusal({.temporal_recursion = R::none, .decay = 0.5}) ==
        "ETraceConfig: temporal_recursion none takes no decay, got 0.5");
}

TEST_CASE("under io_factorized scalars become pairs and the x side leaks") {
  const auto c = ETraceConfig::make({.trace_factorization = io_factorized, .decay = 0.9});
  CHECK(c.temporal_recursion() == leak_and_jacobian);
  CHECK(c.decay() == Decay(0.9, 0.9));
  const auto leaks = ETraceConfig::make({.trace_factorization = io_factorized,
                                         .temporal_recursion = R::scalar_leak,
                                         .decay = 0.9});
  CHECK(leaks.temporal_recursion() == Recursion(R::scalar_leak, R::scalar_leak));
}

TEST_CASE("under io_factorized a zero decay ends the recursion of its side") {
  const auto x_only =
      ETraceConfig::make({.trace_factorization = io_factorized, .decay = {0.9, 0.0}});
  CHECK(x_only.temporal_recursion() == Recursion(R::scalar_leak, R::none));
  const auto f_only =
      ETraceConfig::make({.trace_factorization = io_factorized, .decay = {0.0, 0.9}});
  CHECK(f_only.temporal_recursion() == Recursion(R::none, R::jacobian));
}

TEST_CASE("under io_factorized a side without recursion gets decay 0") {
  const auto c = ETraceConfig::make({.trace_factorization = io_factorized,
                                     .temporal_recursion = {R::none, R::jacobian},
                                     .decay = {std::nullopt, 0.9}});
  CHECK(c.decay() == Decay(0.0, 0.9));
  CHECK(ETraceConfig::make(
            {.trace_factorization = io_factorized, .temporal_recursion = R::none})
            .decay() == Decay(0.0, 0.0));
  CHECK(refusal({.trace_factorization = io_factorized,
                 .temporal_recursion = {R::none, R::jacobian},
                 .decay = 0.9}) ==
        "ETraceConfig: temporal_recursion none takes no decay, got 0.9");
}

TEST_CASE("pairs need io_factorized") {
  const std::string message =
      "ETraceConfig: an (x, f) pair needs trace_factorization io_factorized";
  CHECK(refusal({.temporal_recursion = leak_and_jacobian}) == message);
  CHECK(refusal({.temporal_recursion = R::scalar_leak, .decay = {0.5, 0.5}}) == message);
}

TEST_CASE("sparse_n of 1 is the coupled scope") {
  const auto c =
      ETraceConfig::make({.recurrence_scope = RecurrenceScope::sparse_n, .sparse_n = 1});
  CHECK(c == ETraceConfig::make({.recurrence_scope = RecurrenceScope::coupled}));
  CHECK(!c.sparse_n());
}

TEST_CASE("sparse_n below 1 is refused") {
  CHECK(refusal({.recurrence_scope = RecurrenceScope::sparse_n, .sparse_n = 0}) ==
        "ETraceConfig: sparse_n must be >= 1, got 0");
}

TEST_CASE("a kappa of 0 is no filter") {
  const auto c = ETraceConfig::make({.trace_filter = TraceFilter::kappa, .kappa = 0.0});
  CHECK(c == ETraceConfig());
}

TEST_CASE("decay and kappa lie in the half-open unit interval") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal({.temporal_recursion = R::scalar_leak, .decay = 1.0}) ==
        "ETraceConfig: decay must be in [0, 1), got 1");
  CHECK(refusal({.trace_factorization = io_factorized, .decay = {0.5, -0.1}}) ==
        "ETraceConfig: decay must be in [0, 1), got -0.1");
  CHECK(refusal({.trace_filter = TraceFilter::kappa, .kappa = 1.5}) ==
        "ETraceConfig: kappa must be in [0, 1), got 1.5");
  CHECK(refusal({.temporal_recursion = R::scalar_leak, .decay = nan}) != "");
}

TEST_CASE("a number that names no value of an axis is refused") {
  CHECK(refusal({.recurrence_scope = static_cast<RecurrenceScope>(7)}) ==
        "ETraceConfig: recurrence_scope must be one of diagonal, coupled, sparse_n, got "
        "number 7");
}

// --- rules ----------------------------------------------------------------------------

TEST_CASE("rule 1: the kappa filter needs per_param") {
  CHECK(refusal({.trace_factorization = io_factorized,
                 .trace_filter = TraceFilter::kappa,
                 .decay = 0.9,
                 .kappa = 0.5}) ==
        "ETraceConfig: trace_filter kappa needs per_param, got io_factorized (rule 1)");
}

TEST_CASE("rule 2: a wider scope needs the Jacobian where D is used") {
  CHECK(refusal({.temporal_recursion = R::none,
                 .recurrence_scope = RecurrenceScope::coupled}) ==
        "ETraceConfig: recurrence_scope coupled needs temporal_recursion jacobian, got "
        "none (rule 2)");
  CHECK(refusal({.trace_factorization = io_factorized,
                 .recurrence_scope = RecurrenceScope::coupled,
                 .decay = {0.9, 0.0}}) ==
        "ETraceConfig: recurrence_scope coupled needs temporal_recursion jacobian on the "
        "f side, got none (rule 2)");
  CHECK(refusal({.trace_factorization = io_factorized,
                 .recurrence_scope = RecurrenceScope::coupled,
                 .decay = 0.9}) == "");
}

TEST_CASE("rule 3: the x side has no Jacobian") {
  CHECK(refusal({.trace_factorization = io_factorized,
                 .temporal_recursion = {R::jacobian, R::jacobian},
                 .decay = 0.9}) ==
        "ETraceConfig: the x side of temporal_recursion cannot be jacobian (rule 3)");
}

TEST_CASE("rule 4: a Jacobian recursion takes no decay") {
  CHECK(refusal({.decay = 0.9}) ==
        "ETraceConfig: per_param with temporal_recursion jacobian takes no decay, got "
        "0.9 (rule 4)");
  CHECK(
      refusal({.trace_factorization = random_projection,
               .recurrence_scope = RecurrenceScope::coupled,
               .decay = 0.9}) ==
      "ETraceConfig: random_projection with temporal_recursion jacobian takes no decay, "
      "got 0.9 (rule 4)");
}

TEST_CASE("rule 5: a leak needs a decay") {
  CHECK(refusal({.temporal_recursion = R::scalar_leak}) ==
        "ETraceConfig: temporal_recursion scalar_leak needs a decay (rule 5)");
}

TEST_CASE("rule 6: io_factorized needs both decays") {
  CHECK(refusal({.trace_factorization = io_factorized,
                 .temporal_recursion = {R::none, R::jacobian}}) ==
        "ETraceConfig: io_factorized needs a decay for both sides (rule 6)");
}

TEST_CASE("rule 7: coefficients and categories come together") {
  CHECK(refusal({.kappa = 0.5}) ==
        "ETraceConfig: kappa is given without trace_filter kappa (rule 7)");
  CHECK(refusal({.trace_filter = TraceFilter::kappa}) ==
        "ETraceConfig: trace_filter kappa needs kappa (rule 7)");
  CHECK(refusal({.sparse_n = 2}) ==
        "ETraceConfig: sparse_n is given without recurrence_scope sparse_n (rule 7)");
  CHECK(refusal({.recurrence_scope = RecurrenceScope::sparse_n}) ==
        "ETraceConfig: recurrence_scope sparse_n needs sparse_n (rule 7)");
  CHECK(refusal({.window_size = 4}) ==
        "ETraceConfig: window_size is given without update_schedule window (rule 7)");
}

TEST_CASE("rule 8: later update schedules are known but refused") {
  CHECK(refusal({.update_schedule = UpdateSchedule::window, .window_size = 4}) ==
        "ETraceConfig: update_schedule window is known but not implemented; use per_step "
        "(rule 8)");
  CHECK(refusal({.update_schedule = UpdateSchedule::sequence_end}) != "");
}

TEST_CASE("rule 9: sparse_n needs per_param") {
  CHECK(refusal({.trace_factorization = io_factorized,
                 .recurrence_scope = RecurrenceScope::sparse_n,
                 .decay = 0.9,
                 .sparse_n = 2}) ==
        "ETraceConfig: recurrence_scope sparse_n needs per_param, got io_factorized "
        "(rule 9)");
}

TEST_CASE("rule 10: a sparse_n that stays is at least 2") {
  const auto c =
      ETraceConfig::make({.recurrence_scope = RecurrenceScope::sparse_n, .sparse_n = 2});
  CHECK(c.sparse_n() == 2);
}

TEST_CASE("rule 11: random_projection needs the coupled scope") {
  CHECK(refusal({.trace_factorization = random_projection}) ==
        "ETraceConfig: random_projection needs recurrence_scope coupled, got diagonal "
        "(rule 11)");
}

TEST_CASE("rules are asked in order 8 1 2 4 5 7 11") {
  ETraceConfigFields f = {.trace_factorization = random_projection,
                          .temporal_recursion = R::scalar_leak,
                          .recurrence_scope = RecurrenceScope::sparse_n,
                          .trace_filter = TraceFilter::kappa,
                          .update_schedule = UpdateSchedule::window,
                          .kappa = 0.5};
  const auto ends_with_rule = [&](const char* rule) {
    return refusal(f).find(rule) != std::string::npos;
  };
  CHECK(ends_with_rule("(rule 8)"));
  f.update_schedule = UpdateSchedule::per_step;
  CHECK(ends_with_rule("(rule 1)"));
  f.trace_filter = TraceFilter::none;
  CHECK(ends_with_rule("(rule 2)"));
  f.recurrence_scope = RecurrenceScope::diagonal;
  CHECK(ends_with_rule("(rule 5)"));
  f.temporal_recursion = R::jacobian;
  f.decay = 0.5;
  CHECK(ends_with_rule("(rule 4)"));
  f.decay = {};
  CHECK(ends_with_rule("(rule 7)"));
  f.kappa.reset();
  CHECK(ends_with_rule("(rule 11)"));
  f.recurrence_scope = RecurrenceScope::sparse_n;
  f.sparse_n = 2;
  CHECK(ends_with_rule("(rule 11)"));
}

TEST_CASE("coordinates without a preset are accepted") {
  const std::vector<ETraceConfigFields> all = {
      {.trace_factorization = io_factorized,
       .recurrence_scope = RecurrenceScope::coupled,
       .decay = 0.9},
      {.trace_factorization = io_factorized,
       .learning_signal = LearningSignal::random_feedback,
       .decay = 0.9},
      {.trace_factorization = io_factorized,
       .learning_signal = LearningSignal::modulatory,
       .decay = 0.9},
      {.temporal_recursion = R::scalar_leak, .decay = 0.9},
      {.temporal_recursion = R::none},
      {.recurrence_scope = RecurrenceScope::sparse_n,
       .trace_filter = TraceFilter::kappa,
       .kappa = 0.5,
       .sparse_n = 2},
      {.recurrence_scope = RecurrenceScope::sparse_n,
       .learning_signal = LearningSignal::random_feedback,
       .sparse_n = 2},
      {.recurrence_scope = RecurrenceScope::coupled,
       .trace_filter = TraceFilter::kappa,
       .kappa = 0.5},
      {.trace_factorization = random_projection,
       .recurrence_scope = RecurrenceScope::coupled,
       .learning_signal = LearningSignal::random_feedback},
  };
  for (const ETraceConfigFields& f : all) {
    CHECK(refusal(f) == "");
    const auto c = ETraceConfig::make(f);
    CHECK(ETraceConfig::make(c.fields()) == c);
    CHECK(ETraceConfig::from_json(c.to_json()) == c);
  }
}

// --- record ---------------------------------------------------------------------------

TEST_CASE("replace changes a copy and checks it again") {
  const ETraceConfig c;
  const auto coupled = c.replace(
      [](ETraceConfigFields& f) { f.recurrence_scope = RecurrenceScope::coupled; });
  CHECK(coupled != c);
  CHECK(c == ETraceConfig());
  CHECK_THROWS_WITH_AS(
      coupled.replace([](ETraceConfigFields& f) { f.temporal_recursion = R::none; }),
      "ETraceConfig: recurrence_scope coupled needs temporal_recursion jacobian, got "
      "none (rule 2)",
      UserError);
}

TEST_CASE("describe prints what is not default") {
  CHECK(ETraceConfig::make({.trace_factorization = io_factorized, .decay = {0.9, 0.5}})
            .describe() ==
        "ETraceConfig(trace_factorization=io_factorized, "
        "temporal_recursion=(scalar_leak, jacobian), decay=(0.9, 0.5))");
  CHECK(ETraceConfig::make({.recurrence_scope = RecurrenceScope::sparse_n, .sparse_n = 3})
            .describe() == "ETraceConfig(recurrence_scope=sparse_n, sparse_n=3)");
}

TEST_CASE("JSON has every axis, keys sorted") {
  CHECK(
      ETraceConfig().to_json() ==
      R"({"decay":null,"kappa":null,"learning_signal":"symmetric",)"
      R"("recurrence_scope":"diagonal","sparse_n":null,"temporal_recursion":"jacobian",)"
      R"("trace_factorization":"per_param","trace_filter":"none",)"
      R"("update_schedule":"per_step"})");
}

TEST_CASE("JSON values of the wrong type are type errors") {
  for (const char* text : {R"({"decay": true})", R"({"decay": "0.9"})",
                           R"({"trace_filter": "kappa", "kappa": false})",
                           R"({"recurrence_scope": "sparse_n", "sparse_n": true})",
                           R"({"recurrence_scope": "sparse_n", "sparse_n": 2.0})",
                           R"({"learning_signal": 1})", R"({"depth": 1})", "[]", "{"}) {
    INFO(text);
    CHECK(kind_of_json(text) == ErrorKind::type);
  }
}

TEST_CASE("JSON names and pairs are checked") {
  CHECK_THROWS_WITH_AS(ETraceConfig::from_json(R"({"trace_filter": "low_pass"})"),
                       "ETraceConfig: trace_filter must be one of none, kappa, got "
                       "'low_pass'",
                       UserError);
  CHECK(kind_of_json(R"({"trace_filter": "low_pass"})") == ErrorKind::value);
  CHECK(kind_of_json(
            R"({"trace_factorization": "io_factorized", "decay": [0.1, 0.2, 0.3]})") ==
        ErrorKind::value);
}

}  // namespace config_test
