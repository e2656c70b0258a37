// SPDX-License-Identifier: Apache-2.0
// The table of stand-in derivatives and the op they are attached to.
#include "braintrace/nn/surrogate.h"

#include <cmath>
#include <numbers>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

using std::numbers::pi;

struct ParameterDef {
  std::string_view name;
  double value;
  bool positive = true;
};

struct SurrogateDef {
  std::string_view name;
  std::vector<ParameterDef> parameters;
  Value (*derivative)(const Value& x, std::span<const double> p);
};

Value normal_density(const Value& x, double mean, double sigma) {
  const double scale = 1 / (std::sqrt(2 * pi) * sigma);
  return scale * exp(square(x - mean) * (-0.5 / (sigma * sigma)));
}

Value logistic_slope(const Value& x, double alpha) {
  const Value s = sigmoid(alpha * x);
  return alpha * s * (1 - s);
}

// 1 / (slope |x| + 1)^2
Value inverse_square(const Value& x, double slope) {
  return 1 / square(slope * abs(x) + 1);
}

// (alpha / 2) / (1 + (pi alpha x / 2)^2)
Value cauchy(const Value& x, double alpha) {
  return alpha / 2 / (1 + square(pi * alpha / 2 * x));
}

Value fourier_series(const Value& x, std::span<const double> p) {
  const double period = p[1];
  Value total = zeros_like(x);
  for (int i = 1; i <= static_cast<int>(p[0]); ++i)
    total = total + cos((2 * i - 1) * 2 * pi / period * x);
  return 4 / period * total;
}

Value multi_gaussian(const Value& x, std::span<const double> p) {
  const double h = p[0], s = p[1], sigma = p[2], scale = p[3];
  return scale * ((1 + h) * normal_density(x, 0, sigma) -
                  h * normal_density(x, sigma, s * sigma) -
                  h * normal_density(x, -sigma, s * sigma));
}

Value constant_like(const Value& x, double c) { return c * ones_like(x); }

using P = std::span<const double>;

// Two lists only because one would be too long to read.
std::vector<SurrogateDef> first_entries() {
  return {
      SurrogateDef{
          "ReluGrad",
          {{"alpha", 0.3}, {"width", 1}},
          [](const Value& x, P p) { return maximum(p[0] * p[1] - p[0] * abs(x), 0); }},
      SurrogateDef{"Sigmoid",
                   {{"alpha", 4}},
                   [](const Value& x, P p) { return logistic_slope(x, p[0]); }},
      SurrogateDef{
          "Arctan", {{"alpha", 1}}, [](const Value& x, P p) { return cauchy(x, p[0]); }},
      SurrogateDef{
          "SoftSign",
          {{"alpha", 1}},
          [](const Value& x, P p) { return p[0] / 2 * inverse_square(x, p[0]); }},
      SurrogateDef{
          "PiecewiseQuadratic",
          {{"alpha", 1}},
          [](const Value& x, P p) { return maximum(p[0] - p[0] * p[0] * abs(x), 0); }},
      SurrogateDef{"PiecewiseExp",
                   {{"alpha", 1}},
                   [](const Value& x, P p) { return p[0] / 2 * exp(-p[0] * abs(x)); }},
      SurrogateDef{"ERF",
                   {{"alpha", 1}},
                   [](const Value& x, P p) {
                     return p[0] / std::sqrt(pi) * exp(-p[0] * p[0] * square(x));
                   }},
      SurrogateDef{"NonzeroSignLog",
                   {{"alpha", 1}},
                   [](const Value& x, P p) { return 1 / (1 / p[0] + abs(x)); }},
      SurrogateDef{"PiecewiseLeakyRelu",
                   {{"c", 0.01, false}, {"w", 1}},
                   [](const Value& x, P p) {
                     return select(abs(x) <= p[1], constant_like(x, 0.5 / p[1]), p[0]);
                   }},
      SurrogateDef{"SquarewaveFourierSeries", {{"n", 2}, {"T", 8}}, fourier_series},
      SurrogateDef{"S2NN", {{"alpha", 4}, {"beta", 1}}, [](const Value& x, P p) {
                     // The unused side must stay finite: x + 1 is zero at -1.
                     return select(x < 0, logistic_slope(x, p[0]),
                                   p[1] / (maximum(x, 0) + 1));
                   }}};
}

std::vector<SurrogateDef> other_entries() {
  return {
      SurrogateDef{
          "QPseudoSpike",
          {{"alpha", 2}},
          [](const Value& x, P p) { return pow(1 + 2 / (p[0] + 1) * abs(x), -p[0]); }},
      SurrogateDef{"LeakyRelu",
                   {{"alpha", 0.1, false}, {"beta", 1, false}},
                   [](const Value& x, P p) {
                     return select(x < 0, constant_like(x, p[0]), p[1]);
                   }},
      SurrogateDef{
          "LogTailedRelu",
          {{"alpha", 0, false}},
          [](const Value& x, P p) { return select(x > 0, 1 / maximum(x, 1), p[0]); }},
      SurrogateDef{"GaussianGrad",
                   {{"sigma", 0.5}, {"alpha", 0.5}},
                   [](const Value& x, P p) { return p[1] * normal_density(x, 0, p[0]); }},
      SurrogateDef{"MultiGaussianGrad",
                   {{"h", 0.15}, {"s", 6}, {"sigma", 0.5}, {"scale", 0.5}},
                   multi_gaussian},
      SurrogateDef{"InvSquareGrad",
                   {{"alpha", 100}},
                   [](const Value& x, P p) { return inverse_square(x, p[0]); }},
      SurrogateDef{"SlayerGrad",
                   {{"alpha", 1}},
                   [](const Value& x, P p) { return exp(-p[0] * abs(x)); }},
      SurrogateDef{"FastSigmoid",
                   {{"slope", 25}},
                   [](const Value& x, P p) { return inverse_square(x, p[0]); }},
      SurrogateDef{"SuperSpike",
                   {{"beta", 10}},
                   [](const Value& x, P p) { return inverse_square(x, p[0]); }},
      SurrogateDef{
          "ATan", {{"alpha", 2}}, [](const Value& x, P p) { return cauchy(x, p[0]); }},
      SurrogateDef{
          "Triangular",
          {{"width", 1}},
          [](const Value& x, P p) { return maximum(1 - abs(x) / p[0], 0) / p[0]; }},
      SurrogateDef{"Boxcar",
                   {{"width", 1}},
                   [](const Value& x, P p) {
                     return select(abs(x) <= p[0] / 2, constant_like(x, 1 / p[0]), 0);
                   }},
      SurrogateDef{
          "StraightThrough", {}, [](const Value& x, P) { return ones_like(x); }}};
}

const std::vector<SurrogateDef>& table() {
  static const std::vector<SurrogateDef> entries = [] {
    std::vector<SurrogateDef> all = first_entries();
    for (const SurrogateDef& d : other_entries()) all.push_back(d);
    return all;
  }();
  return entries;
}

std::size_t find(std::string_view name) {
  for (std::size_t i = 0; i < table().size(); ++i)
    if (table()[i].name == name) return i;
  throw UserError(fmt::format("Surrogate: no spike function is called '{}'; known: {}",
                              name, fmt::join(surrogate_names(), ", ")));
}

std::size_t find_parameter(const SurrogateDef& def, std::string_view name) {
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < def.parameters.size(); ++i) {
    if (def.parameters[i].name == name) return i;
    known.push_back(def.parameters[i].name);
  }
  throw UserError(fmt::format("Surrogate: {} has no parameter '{}'; known: {}", def.name,
                              name, fmt::join(known, ", ")));
}

void check_parameter(const SurrogateDef& def, const ParameterDef& p, double value) {
  BT_REQUIRE(std::isfinite(value) && (!p.positive || value > 0),
             fmt::format("Surrogate: {}'s {} must be {}, got {}", def.name, p.name,
                         p.positive ? "positive and finite" : "finite", value));
  constexpr double max_terms = 1000;
  const bool is_count = def.derivative == fourier_series && p.name == "n";
  BT_REQUIRE(!is_count || (value == std::floor(value) && value <= max_terms),
             fmt::format("Surrogate: {}'s n must be a whole number of at most {}, got {}",
                         def.name, max_terms, value));
}

}  // namespace

Surrogate::Surrogate(std::string_view name, std::initializer_list<Parameter> parameters)
    : Surrogate(name, std::span(parameters.begin(), parameters.size())) {}

Surrogate::Surrogate(std::string_view name, std::span<const Parameter> parameters)
    : index_(find(name)) {
  const SurrogateDef& def = table()[index_];
  for (const ParameterDef& p : def.parameters) parameters_.push_back(p.value);
  for (const auto& [key, value] : parameters) {
    const std::size_t i = find_parameter(def, key);
    check_parameter(def, def.parameters[i], value);
    parameters_[i] = value;
  }
}

Value Surrogate::operator()(const Value& x) const {
  BT_REQUIRE_KIND(is_float(x.dtype()), ErrorKind::type,
                  fmt::format("Surrogate: {} needs a float argument, got {}", name(),
                              braintrace::to_string(x.type())));
  const auto step = [](const Values& in) -> Values {
    return {astype(in[0] >= 0, in[0].dtype())};
  };
  const auto slope = [this](const Values& in) -> Values {
    return {derivative(stop_gradient(in[0])) * in[1]};
  };
  return custom_jvp({x}, step, slope, {.elementwise = true})[0];
}

Value Surrogate::derivative(const Value& x) const {
  return table()[index_].derivative(x, parameters_);
}

std::string_view Surrogate::name() const { return table()[index_].name; }

std::string Surrogate::to_string() const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parts.push_back(
        fmt::format("{}={}", table()[index_].parameters[i].name, parameters_[i]));
  return fmt::format("{}({})", name(), fmt::join(parts, ", "));
}

std::span<const std::string_view> surrogate_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const SurrogateDef& d : table()) out.push_back(d.name);
    return out;
  }();
  return names;
}

}  // namespace braintrace::nn
