// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/tasks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "braintrace/testing/tolerance.h"

namespace braintrace::tasks_test {
namespace {

constexpr std::int64_t many = 400;

double input(const TaskBatch& b, std::int64_t t, std::int64_t n, std::int64_t f) {
  const Shape& s = b.inputs.shape();
  return b.inputs.at((t * s[1] + n) * s[2] + f);
}

std::int64_t label(const TaskBatch& b, std::int64_t t, std::int64_t n) {
  return static_cast<std::int64_t>(b.targets.at(t * b.targets.shape()[1] + n));
}

// The one input that is 1.
std::int64_t shown(const TaskBatch& b, std::int64_t t, std::int64_t n) {
  std::int64_t found = -1;
  for (std::int64_t f = 0; f < b.inputs.shape()[2]; ++f) {
    if (input(b, t, n, f) == 0) continue;
    REQUIRE(found == -1);
    found = f;
  }
  return found;
}

}  // namespace

TEST_CASE("every task gives the samples of its seed, whatever the batch") {
  for (const std::string& name : task_names()) {
    CAPTURE(name);
    const Task task = make_task(name, {.seed = 3});
    const TaskBatch all = task.batch(Split::train, 0, 6),
                    again = task.batch(Split::train, 0, 6);
    CHECK(all.inputs == again.inputs);
    CHECK(all.targets == again.targets);
    const TaskBatch tail = task.batch(Split::train, 4, 2);
    for (std::int64_t f = 0; f < task.shape().features; ++f)
      CHECK(input(tail, 0, 1, f) == input(all, 0, 5, f));
    CHECK_FALSE(make_task(name, {.seed = 4}).batch(Split::train, 0, 6).inputs ==
                all.inputs);
    CHECK_FALSE(task.batch(Split::test, 0, 6).inputs == all.inputs);
    CHECK(all.inputs.shape() == Shape{task.shape().steps, 6, task.shape().features});
  }
}

TEST_CASE("every task has a baseline that leaves something to learn") {
  for (const std::string& name : task_names()) {
    CAPTURE(name);
    const Task task = make_task(name);
    const Baseline b = constant_baseline(task, task.batch(Split::test, 0, many));
    CHECK(b.loss > 0);
    if (task.loss() == TaskLoss::mse) continue;
    CHECK(b.loss <= std::log(static_cast<double>(task.shape().outputs)) + tol::f64);
    CHECK(*b.accuracy < 0.7);
    CHECK(*b.accuracy >= 1.0 / static_cast<double>(task.shape().outputs));
  }
}

TEST_CASE("baselines are those of theory") {
  const auto loss = [](const Task& t) {
    return constant_baseline(t, t.batch(Split::test, 0, 4000)).loss;
  };
  CHECK(loss(adding_task()) == doctest::Approx(1.0 / 6).epsilon(0.05));
  CHECK(loss(copying_task({.symbols = 8})) == doctest::Approx(std::log(8)).epsilon(0.01));
  CHECK(loss(digits_task()) == doctest::Approx(std::log(10)).epsilon(0.01));
}

TEST_CASE("a constant baseline is the variance around the mean, over scored steps only") {
  const auto generate = [](RngKey, Split) {
    return Task::Sample{{0, 0, 0}, {100, 1, 3}};
  };
  const Task task("toy", TaskLoss::mse, {3, 1, 1}, {0, 1, 1}, generate, {});
  CHECK(constant_baseline(task, task.batch(Split::test, 0, 2)).loss ==
        doctest::Approx(1));
  const Task silent("toy", TaskLoss::mse, {3, 1, 1}, {0, 0, 0}, generate, {});
  CHECK_THROWS_WITH_AS(constant_baseline(silent, silent.batch(Split::test, 0, 1)),
                       "toy: no step is scored", UserError);
}

TEST_CASE("the baseline of several batches is that of all their samples") {
  for (const Task& task : {copying_task({}), adding_task()}) {
    BaselineSums sums(task);
    sums.add(task.batch(Split::test, 0, 7));
    sums.add(task.batch(Split::test, 7, 3));
    const Baseline want = constant_baseline(task, task.batch(Split::test, 0, 10));
    CHECK(sums.value().loss == doctest::Approx(want.loss).epsilon(tol::f64));
    CHECK(sums.value().accuracy == want.accuracy);
  }
}

TEST_CASE("a baseline refuses batches of another task") {
  const auto refuses = [](const Task& task, const Task& other) {
    const TaskBatch b = other.batch(Split::test, 0, 2);
    CHECK_THROWS_WITH_AS(constant_baseline(task, b),
                         doctest::Contains("a batch of this task has"), UserError);
  };
  refuses(copying_task({.delay = 50}), copying_task({.delay = 5}));
  refuses(copying_task({}), adding_task());
  refuses(adding_task(), copying_task({}));
  CHECK_THROWS_WITH_AS(
      constant_baseline(copying_task({.symbols = 2}),
                        copying_task({.symbols = 8}).batch(Split::test, 0, 20)),
      doctest::Contains("copying: labels must be 0 to"), UserError);
}

TEST_CASE("long work on samples pauses often, and ends when told so") {
  struct Enough {};
  int pauses = 0, most = 1 << 30;
  const Pause pause = [&] {
    if (++pauses > most) throw Enough();
  };
  for (const Task& task : {copying_task({}), adding_task()}) {
    pauses = 0;
    const TaskBatch b = task.batch(Split::test, 0, 30, pause);
    CHECK(pauses == 30);
    CHECK(b.inputs == task.batch(Split::test, 0, 30).inputs);
    pauses = 0;
    constant_baseline(task, b, pause);
    CHECK(pauses >= task.shape().steps);
    most = 7, pauses = 0;
    CHECK_THROWS_AS(task.batch(Split::test, 0, 30, pause), Enough);
    pauses = 0;
    CHECK_THROWS_AS(constant_baseline(task, b, pause), Enough);
    most = 1 << 30;
  }
}

TEST_CASE("copying asks for the symbols in their order") {
  const CopyingOptions o{.symbols = 4, .length = 3, .delay = 5};
  const TaskBatch b = copying_task(o).batch(Split::train, 0, 20);
  for (std::int64_t n = 0; n < 20; ++n) {
    for (std::int64_t t = 0; t < 3; ++t) CHECK(shown(b, t, n) == label(b, 8 + t, n));
    for (std::int64_t t = 3; t < 8; ++t) CHECK(shown(b, t, n) == 0);
    for (std::int64_t t = 8; t < 11; ++t) CHECK(shown(b, t, n) == 5);
  }
  CHECK(b.mask == std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1});
}

TEST_CASE("the integrator's target is the running sum of its input") {
  const TaskBatch b = integrator_task().batch(Split::train, 0, 3);
  double total = 0;
  for (std::int64_t t = 0; t < 25; ++t) {
    total += input(b, t, 1, 0);
    CHECK(b.targets.at(t * 3 + 1) == doctest::Approx(total).epsilon(tol::f32_grad));
  }
}

TEST_CASE("adding marks two numbers and asks for their sum") {
  const TaskBatch b = adding_task({.steps = 7}).batch(Split::train, 0, 50);
  for (std::int64_t n = 0; n < 50; ++n) {
    double marked = 0, sum = 0;
    for (std::int64_t t = 0; t < 7; ++t) {
      marked += input(b, t, n, 1);
      sum += input(b, t, n, 0) * input(b, t, n, 1);
    }
    CHECK(marked == 2);
    CHECK(b.targets.at(6 * 50 + n) == doctest::Approx(sum).epsilon(tol::f32));
  }
}

TEST_CASE("delayed match shows the same channel exactly when the label is 1") {
  const TaskBatch b =
      delayed_match_task({.channels = 4, .steps = 40, .rate = 1000, .background = 0})
          .batch(Split::train, 0, 40);
  std::int64_t matches = 0;
  for (std::int64_t n = 0; n < 40; ++n) {
    CHECK((shown(b, 0, n) == shown(b, 39, n)) == (label(b, 39, n) == 1));
    CHECK(shown(b, 20, n) == -1);
    matches += label(b, 39, n);
  }
  CHECK(matches > 8);
  CHECK(matches < 32);
}

TEST_CASE("evidence labels the majority of the cues") {
  const EvidenceOptions o{.cues = 3,
                          .cue_steps = 1,
                          .gap_steps = 0,
                          .delay_steps = 2,
                          .recall_steps = 1,
                          .group = 1,
                          .rate = 1000,
                          .noise_rate = 0};
  const TaskBatch b = evidence_task(o).batch(Split::train, 0, 40);
  for (std::int64_t n = 0; n < 40; ++n) {
    double left = 0;
    for (std::int64_t t = 0; t < 3; ++t) left += input(b, t, n, 0);
    CHECK((left > 1.5) == (label(b, 5, n) == 1));
    CHECK(input(b, 5, n, 2) == 1);
    CHECK(input(b, 4, n, 2) == 0);
  }
}

TEST_CASE("digits can be told apart by the nearest mean of their class") {
  const Task task = digits_task({.noise = 0.1});
  const std::int64_t pixels = 64;
  const TaskBatch train = task.batch(Split::train, 0, 1000),
                  test = task.batch(Split::test, 0, 200);
  std::vector<std::vector<double>> means(10, std::vector<double>(pixels));
  const auto pixel = [](const TaskBatch& b, std::int64_t n, std::int64_t p) {
    return input(b, p / 8, n, p % 8);
  };
  std::vector<double> count(10);
  for (std::int64_t n = 0; n < 1000; ++n) {
    const std::int64_t c = label(train, 7, n);
    ++count[c];
    for (std::int64_t p = 0; p < pixels; ++p) means[c][p] += pixel(train, n, p);
  }
  int right = 0;
  for (std::int64_t n = 0; n < 200; ++n) {
    std::vector<double> distance(10);
    for (std::int64_t c = 0; c < 10; ++c)
      for (std::int64_t p = 0; p < pixels; ++p)
        distance[c] += std::pow(means[c][p] / count[c] - pixel(test, n, p), 2);
    const auto best =
        std::min_element(distance.begin(), distance.end()) - distance.begin();
    right += best == label(test, 7, n) ? 1 : 0;
  }
  CHECK(right > 80);  // chance: 20
}

TEST_CASE("text labels are the next characters, and the splits do not overlap") {
  std::string text(90, 'a');
  text += std::string(60, 'b');
  const Task task = text_task({.text = text + std::string(50, 'c'), .steps = 5});
  CHECK(task.shape().features == 3);
  const TaskBatch train = task.batch(Split::train, 0, 100),
                  test = task.batch(Split::test, 0, 20);
  for (std::int64_t n = 0; n < 100; ++n)
    for (std::int64_t t = 0; t + 1 < 5; ++t)
      CHECK(label(train, t, n) == shown(train, t + 1, n));
  for (std::int64_t n = 0; n < 20; ++n) CHECK(shown(test, 0, n) == 2);
}

TEST_CASE("patterns are the same in both splits and follow the cue") {
  const Task task = pattern_task();
  const TaskBatch a = task.batch(Split::train, 0, 30), b = task.batch(Split::test, 0, 30);
  const auto target = [](const TaskBatch& x, std::int64_t t, std::int64_t n) {
    return x.targets.at((t * 30 + n) * 2);
  };
  for (std::int64_t n = 0; n < 30; ++n)
    CHECK((shown(a, 0, 0) == shown(b, 0, n)) == (target(a, 9, 0) == target(b, 9, n)));
}

TEST_CASE("tasks refuse bad options by name") {
  CHECK_THROWS_WITH_AS(make_task("mnist"),
                       "make_task: unknown task 'mnist'; known: copying, integrator, "
                       "delayed_match, adding, digits, evidence, pattern, text",
                       UserError);
  CHECK_THROWS_WITH_AS(copying_task({.length = 0}),
                       "copying: length must lie in [1, 1000000], got 0", UserError);
  CHECK_THROWS_AS(evidence_task({.cues = 4}), UserError);
  CHECK_THROWS_AS(delayed_match_task({.rate = 2000}), UserError);
  CHECK_THROWS_AS(text_task({.text = "short"}), UserError);
  CHECK_THROWS_AS(integrator_task({.dt = 0}), UserError);
  CHECK_THROWS_AS(digits_task({.noise = -1}), UserError);
  CHECK_THROWS_AS(adding_task().batch(Split::train, 0, 0), UserError);
}

}  // namespace braintrace::tasks_test
