// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/gradients.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/testing/close.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/metrics.h"

namespace braintrace::gradients_test {
namespace {

using testing::check_close;

const StateDict grads = {{"a", array({3, 4}, DType::f64)},
                         {"b", array({12}, DType::f64)}};

Array row(const nlohmann::json& j) {
  const auto values = j.get<std::vector<double>>();
  return array({static_cast<std::int64_t>(values.size())}, values, DType::f64);
}

}  // namespace

TEST_CASE("global_norm joins all leaves") {
  CHECK(global_norm(grads) == doctest::Approx(13));
  CHECK(global_norm(grads, 1) == doctest::Approx(19));
  CHECK(global_norm(grads, std::numeric_limits<double>::infinity()) == 12);
}

TEST_CASE("clip_grad_norm reproduces recorded numbers in f64 and f32") {
  const auto file =
      testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json")["clip_grad_norm"];
  for (const DType dtype : {DType::f64, DType::f32}) {
    StateDict in;
    for (const auto& [name, values] : file["in"].items())
      in.emplace(name, row(values).astype(dtype));
    const StateDict out = clip_grad_norm(in, file["max"].get<double>());
    CHECK(out.size() == file["out"].size());
    for (const auto& [name, values] : file["out"].items()) {
      CHECK(out.at(name).dtype() == dtype);
      check_close(name, out.at(name).astype(DType::f64), row(values),
                  dtype == DType::f64 ? tol::f64_golden : tol::golden);
    }
  }
}

TEST_CASE("clip_grad_norm leaves gradients below the limit as they are") {
  CHECK(clip_grad_norm(grads, 20) == grads);
}

TEST_CASE("clip_grad_value cuts every entry") {
  const StateDict out = clip_grad_value(grads, 3.5);
  CHECK(out.at("a") == array({3, 3.5}, DType::f64));
  CHECK(out.at("b") == array({3.5}, DType::f64));
}

TEST_CASE("GradExpon is a leaky sum that can be saved") {
  GradExpon g(0.5);
  g.update({{"a", array({1}, DType::f64)}});
  CHECK(g.update({{"a", array({1}, DType::f64)}, {"b", array({2}, DType::f64)}}) ==
        StateDict{{"a", array({1.5}, DType::f64)}, {"b", array({2}, DType::f64)}});
  GradExpon resumed(0.5);
  resumed.restore(g.value());
  const StateDict next = {{"a", array({4}, DType::f64)}};
  CHECK(resumed.update(next) == g.update(next));
  CHECK(GradExpon::with_tau(5).decay() == doctest::Approx(std::exp(-0.2)));
  g.reset();
  CHECK(g.value().empty());
}

TEST_CASE("gradient helpers refuse bad arguments") {
  CHECK_THROWS_WITH_AS(clip_grad_norm(grads, 0),
                       "clip_grad_norm: max_norm must be > 0, got 0", UserError);
  CHECK_THROWS_WITH_AS(GradExpon(1.0), "GradExpon: decay must lie in (0, 1), got 1",
                       UserError);
  CHECK_THROWS_WITH_AS(GradExpon::with_tau(0),
                       "GradExpon: tau and dt must be > 0 ms, got 0 and 1", UserError);
  CHECK_THROWS_WITH_AS(add_grads(grads, {{"a", zeros({3})}}),
                       "add_grads: 'a' has shapes [2] and [3]", UserError);
}

TEST_CASE("accuracy counts rows whose largest score is at the label") {
  const Array scores = array({3, 2}, {1, 2, 5, 3, 0, 1});
  const Array labels = Array::from<std::int32_t>({3}, {1, 1, 1});
  CHECK(accuracy(scores, labels).array().item() == doctest::Approx(2.0 / 3));
  const Array over_time = array({2, 1, 2}, {5, 0, 0, 4});
  CHECK(
      accuracy_over_time(over_time, Array::from<std::int32_t>({1}, {0})).array().item() ==
      1);
  CHECK_THROWS_WITH_AS(accuracy(scores, zeros({3})),
                       "accuracy: labels must be i32, got f32", UserError);
}

TEST_CASE("firing_rate is in Hz") {
  CHECK(firing_rate(array({2, 2}, {1, 0, 0, 0}), 0.5).array().item() ==
        doctest::Approx(500));
  CHECK_THROWS_WITH_AS(firing_rate(zeros({2}), 0),
                       "firing_rate: dt must be > 0 ms, got 0", UserError);
}

TEST_CASE("gradient_cosine joins all leaves") {
  const StateDict other = {{"a", array({-4, 3}, DType::f64)},
                           {"b", array({12}, DType::f64)}};
  CHECK(gradient_cosine(grads, grads) == doctest::Approx(1));
  CHECK(gradient_cosine(grads, other) == doctest::Approx(144.0 / 169));
  CHECK(gradient_cosines(grads, other).at("a") == doctest::Approx(0));
  CHECK(gradient_cosine(grads, scale_grads(grads, 0)) == 0);
  CHECK_THROWS_WITH_AS(gradient_cosine(grads, {{"a", zeros({2})}}),
                       "gradient_cosine: only the first gradient has 'b'", UserError);
}

}  // namespace braintrace::gradients_test
