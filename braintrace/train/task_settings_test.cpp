// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/task_settings.h"

#include <doctest/doctest.h>

#include "braintrace/base/error.h"

namespace task_settings_test {

using namespace braintrace;

TEST_CASE("every task is made by its name and has options by name") {
  for (const std::string& name : task_names()) {
    CAPTURE(name);
    CHECK(configured_task(name, {}).name() == name);
    CHECK_FALSE(task_setting_names(name).empty());
  }
}

TEST_CASE("settings reach the options they name") {
  CHECK(configured_task("copying", {{"delay", "5"}, {"length", "3"}}).shape().steps ==
        copying_task({.length = 3, .delay = 5}).shape().steps);
  CHECK(configured_task("digits", {{"scan", "pixels"}}).shape().steps == 64);
  CHECK(configured_task("text", {{"text", "abcabcabcabcabcabcabc"}, {"steps", "2"}})
            .shape()
            .features == 3);
  const Task quiet =
      configured_task("integrator", {{"noise", "0"}, {"bias", "0.0"}}, {.seed = 7});
  CHECK(quiet.batch(Split::train, 0, 1).inputs ==
        integrator_task({.bias = 0, .noise = 0, .task = {.seed = 7}})
            .batch(Split::train, 0, 1)
            .inputs);
}

TEST_CASE("settings that cannot be meant are refused by name") {
  CHECK_THROWS_WITH_AS(
      configured_task("copying", {{"dealy", "5"}}),
      doctest::Contains("copying: no option 'dealy'; there are symbols, length, delay"),
      UserError);
  CHECK_THROWS_WITH_AS(configured_task("copying", {{"delay", "5.5"}}),
                       doctest::Contains("copying: delay must be an integer, got '5.5'"),
                       UserError);
  CHECK_THROWS_WITH_AS(configured_task("integrator", {{"dt", ""}}),
                       doctest::Contains("integrator: dt must be a number, got ''"),
                       UserError);
  CHECK_THROWS_WITH_AS(configured_task("digits", {{"scan", "columns"}}),
                       doctest::Contains("rows or pixels"), UserError);
  CHECK_THROWS_WITH_AS(task_setting_names("mnist"),
                       doctest::Contains("unknown task 'mnist'"), UserError);
}

}  // namespace task_settings_test
