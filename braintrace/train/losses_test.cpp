// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/losses.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::losses_test {
namespace {

using testing::check_close;
using testing::uniform;

using Loss = std::function<Value(const Value&)>;

double value(const Value& v) { return v.array().item(); }

Array gradient(const Loss& loss, const Array& x) {
  const auto builder = Builder::create();
  const Value in = builder->input(type_of(x));
  const Value out = loss(in);
  return eval_graph(grad(builder->finish(std::vector<Value>{out})),
                    std::vector<Array>{x})[0];
}

void check_gradient(const std::string& name, const Loss& loss, const Array& x) {
  constexpr double h = 1e-6;
  Array numeric(DType::f64, x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    Array above = x, below = x;
    above.mutable_data<double>()[i] += h;
    below.mutable_data<double>()[i] -= h;
    numeric.mutable_data<double>()[i] =
        (value(loss(above)) - value(loss(below))) / (2 * h);
  }
  check_close(name, gradient(loss, x), numeric, tol::f64_diff);
}

Array labels(std::vector<std::int32_t> v) {
  const auto n = static_cast<std::int64_t>(v.size());
  return Array::from<std::int32_t>({n}, v);
}

}  // namespace

TEST_CASE(
    "softmax_cross_entropy reproduces recorded numbers and gradients in f64 and f32") {
  const auto file = testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json")["loss"];
  std::vector<double> z, dz;
  for (const auto& row : file["logits"])
    for (const auto& v : row) z.push_back(v.get<double>());
  for (const auto& row : file["grad_mean"])
    for (const auto& v : row) dz.push_back(v.get<double>());
  const Array y = labels(file["labels"].get<std::vector<std::int32_t>>());
  const double a = file["softmax_ce"][0].get<double>(),
               b = file["softmax_ce"][1].get<double>();
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? tol::f64_golden : tol::golden;
    const Array logits = array({2, 4}, z, dtype);
    CHECK(std::abs(value(softmax_cross_entropy(logits, y)) - (a + b) / 2) < tolerance);
    const Array slope =
        gradient([&](const Value& v) { return softmax_cross_entropy(v, y); }, logits);
    CHECK(slope.dtype() == dtype);
    check_close("gradient", slope.astype(DType::f64), array({2, 4}, dz, DType::f64),
                tolerance);
  }
}

TEST_CASE("losses have their closed forms") {
  const Array p = array({1, -2, 4}, DType::f64), t = array({0, 0, 1}, DType::f64);
  CHECK(value(mse(p, t)) == doctest::Approx(14.0 / 3));
  CHECK(value(l1(p, t)) == doctest::Approx(2));
  CHECK(value(huber(p, t)) == doctest::Approx((0.5 + 1.5 + 2.5) / 3));
  const double bce = (std::log1p(std::exp(1.0)) + std::log1p(std::exp(-2.0)) +
                      std::log1p(std::exp(4.0)) - 4) /
                     3;
  CHECK(value(binary_cross_entropy(p, t)) == doctest::Approx(bce));
  CHECK(value(cosine_loss(p, t)) == doctest::Approx(1 - 4 / std::sqrt(21.0)));
  CHECK(value(nll(array({2, 2}, {-1, -2, -3, -4}, DType::f64), labels({1, 0}))) ==
        doctest::Approx(2.5));
  CHECK(value(firing_rate_penalty(array({1, 0}, DType::f64),
                                  {.target_hz = 100, .dt = 1, .factor = 2})) ==
        doctest::Approx(2 * 0.16));
  CHECK(value(potential_penalty(array({3, -2}, DType::f64))) == doctest::Approx(6.25));
}

TEST_CASE("losses have the right gradients") {
  const Array x = uniform({2, 3}, -2, 2), t = uniform({2, 3}, 0.1, 0.9, 5);
  const Array y = labels({2, 0});
  check_gradient(
      "mse", [&](const Value& v) { return mse(v, t); }, x);
  check_gradient(
      "l1", [&](const Value& v) { return l1(v, t); }, x);
  check_gradient(
      "huber", [&](const Value& v) { return huber(v, t, 0.7); }, x);
  check_gradient(
      "nll", [&](const Value& v) { return nll(v, y); }, x);
  check_gradient(
      "binary", [&](const Value& v) { return binary_cross_entropy(v, t); }, x);
  check_gradient(
      "cosine", [&](const Value& v) { return cosine_loss(v, t); }, x);
  check_gradient(
      "rate", [&](const Value& v) { return firing_rate_penalty(v); }, x);
  check_gradient(
      "potential", [&](const Value& v) { return potential_penalty(v); }, x);
}

TEST_CASE("extreme scores give finite losses") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(value(binary_cross_entropy(array({1000, -1000}), array({1, 0}))) == 0);
  CHECK(value(softmax_cross_entropy(array({1, 2}, {1e30, -1e30}), labels({0}))) == 0);
  CHECK(value(softmax_cross_entropy(array({1, 2}, {0, -inf}), labels({0}))) == 0);
  CHECK(value(cosine_loss(zeros({3}), ones({3}))) == 1);
  const Array g =
      gradient([](const Value& v) { return cosine_loss(v, ones({3}, DType::f64)); },
               zeros({3}, DType::f64));
  for (double v : g.to_doubles()) CHECK(std::isfinite(v));
}

TEST_CASE("losses refuse shapes, types and labels that do not fit") {
  CHECK_THROWS_WITH_AS(mse(zeros({2}), zeros({1})),
                       "mse: prediction and target must have one shape, got [2] and [1]",
                       UserError);
  CHECK_THROWS_WITH_AS(l1(labels({1}), labels({1})),
                       "l1: the prediction must be f32 or f64, got i32", UserError);
  CHECK_THROWS_WITH_AS(huber(zeros({2}), zeros({2}), 0),
                       "huber: delta must be > 0, got 0", UserError);
  CHECK_THROWS_WITH_AS(nll(zeros({2, 3}), labels({1})),
                       "nll: labels must be [2], got [1]", UserError);
  CHECK_THROWS_WITH_AS(softmax_cross_entropy(zeros({2, 3}), zeros({2})),
                       "softmax_cross_entropy: labels must be i32, got f32", UserError);
}

TEST_CASE("a label outside the classes is named with its loss") {
  CHECK_THROWS_WITH_AS(
      softmax_cross_entropy(zeros({2, 3}), labels({0, 3})),
      doctest::Contains("softmax_cross_entropy: label 3 is outside [0, 3)"), UserError);
  CHECK_THROWS_WITH_AS(nll(zeros({1, 3}), labels({-1})),
                       doctest::Contains("nll: label -1 is outside [0, 3)"), UserError);
}

}  // namespace braintrace::losses_test
