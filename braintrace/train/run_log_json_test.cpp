// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/run_log_json.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/base/error.h"

namespace run_log_json_test {

using namespace braintrace;

namespace {

RunLog example() {
  RunLog log;
  log.training = {{.update = 1, .loss = 0.1}, {.update = 2, .loss = 1.0 / 3}};
  log.evaluations = {{.update = 2, .loss = 0.5, .accuracy = 0.25, .firing_rate = 0.1}};
  log.constant_loss = 0.7;
  log.constant_accuracy = 0.5;
  log.rasters = {{"lif", 4, 2, {{0, 1}, {3, 0}}}};
  log.seconds = 1.5;
  log.time_steps = 80;
  return log;
}

}  // namespace

TEST_CASE("a run's log comes back from its text to the last bit") {
  const RunLog log = example();
  const std::string text = run_log_to_json(log);
  const RunLog back = run_log_from_json(text);
  CHECK(run_log_to_json(back) == text);
  REQUIRE(back.training.size() == 2);
  CHECK(back.training[1].loss == log.training[1].loss);
  CHECK(back.evaluations[0].accuracy == 0.25);
  CHECK(back.evaluations[0].firing_rate == 0.1);
  CHECK_FALSE(back.training[0].accuracy.has_value());
  CHECK(back.constant_accuracy == 0.5);
  CHECK(back.rasters[0].spikes == log.rasters[0].spikes);
  CHECK(back.time_steps == 80);
}

TEST_CASE("curves leave the rasters out") {
  const std::string text = run_log_to_json(example(), RunLogPart::curves);
  CHECK(text.find("rasters") == std::string::npos);
  CHECK(run_log_from_json(text).rasters.empty());
}

TEST_CASE("a loss that is no number comes back as not a number") {
  RunLog log = example();
  log.training[1].loss = std::numeric_limits<double>::infinity();
  log.evaluations[0].loss = std::numeric_limits<double>::quiet_NaN();
  const RunLog back = run_log_from_json(run_log_to_json(log));
  CHECK(std::isnan(back.training[1].loss));
  CHECK(std::isnan(back.evaluations[0].loss));
  CHECK(back.training[0].loss == log.training[0].loss);
}

TEST_CASE("text that is no log is refused") {
  const std::string text = run_log_to_json(example());
  CHECK_THROWS_AS(run_log_from_json("{"), UserError);
  CHECK_THROWS_AS(run_log_from_json("{\"training\": []}"), UserError);
  CHECK_THROWS_AS(run_log_from_json("[]"), UserError);
  std::string outside = text;
  const std::size_t at = outside.find("[[0,1],[3,0]]");
  REQUIRE(at != std::string::npos);
  outside.replace(at, 13, "[[0,1],[9,0]]");
  CHECK_THROWS_WITH_AS(run_log_from_json(outside),
                       doctest::Contains("outside 4 steps of 2 units"), UserError);
}

}  // namespace run_log_json_test
