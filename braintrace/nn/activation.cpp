// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/activation.h"

#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

using Function = std::function<Value(const Value&)>;

const std::map<std::string, Function, std::less<>>& functions() {
  static const std::map<std::string, Function, std::less<>> table = {
      {"celu", [](const Value& x) { return celu(x); }},
      {"elu", [](const Value& x) { return elu(x); }},
      {"gelu", [](const Value& x) { return gelu(x); }},
      {"gelu_exact", [](const Value& x) { return gelu_exact(x); }},
      {"gelu_tanh", [](const Value& x) { return gelu_tanh(x); }},
      {"glu", [](const Value& x) { return glu(x); }},
      {"hard_shrink", [](const Value& x) { return hard_shrink(x); }},
      {"hard_sigmoid", [](const Value& x) { return hard_sigmoid(x); }},
      {"hard_silu", [](const Value& x) { return hard_swish(x); }},
      {"hard_swish", [](const Value& x) { return hard_swish(x); }},
      {"hard_tanh", [](const Value& x) { return hard_tanh(x); }},
      {"identity", [](const Value& x) { return x; }},
      {"leaky_relu", [](const Value& x) { return leaky_relu(x); }},
      {"log_sigmoid", [](const Value& x) { return log_sigmoid(x); }},
      {"log_softmax", [](const Value& x) { return log_softmax(x); }},
      {"mish", [](const Value& x) { return mish(x); }},
      {"prelu", [](const Value& x) { return prelu(x); }},
      {"relu", [](const Value& x) { return relu(x); }},
      {"relu6", [](const Value& x) { return relu6(x); }},
      {"selu", [](const Value& x) { return selu(x); }},
      {"sigmoid", [](const Value& x) { return sigmoid(x); }},
      {"silu", [](const Value& x) { return silu(x); }},
      {"sin", [](const Value& x) { return sin(x); }},
      {"soft_shrink", [](const Value& x) { return soft_shrink(x); }},
      {"soft_sign", [](const Value& x) { return soft_sign(x); }},
      {"softmax", [](const Value& x) { return softmax(x); }},
      {"softmin", [](const Value& x) { return softmin(x); }},
      {"softplus", [](const Value& x) { return softplus(x); }},
      {"sparse_plus", [](const Value& x) { return sparse_plus(x); }},
      {"sparse_sigmoid", [](const Value& x) { return sparse_sigmoid(x); }},
      {"squareplus", [](const Value& x) { return squareplus(x); }},
      {"swish", [](const Value& x) { return silu(x); }},
      {"tanh", [](const Value& x) { return tanh(x); }},
      {"tanh_shrink", [](const Value& x) { return tanh_shrink(x); }},
  };
  return table;
}

// The branch below 0 sees only values below 0, so that e^x cannot overflow there.
Value below_zero(const Value& x) { return minimum(x, 0); }

}  // namespace

Activation::Activation(std::string_view name) {
  const auto it = functions().find(name);
  BT_REQUIRE(it != functions().end(),
             fmt::format("Activation: unknown name '{}', known are {}", name,
                         fmt::join(activation_names(), ", ")));
  f_ = it->second;
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, f] : functions()) names.push_back(name);
  return names;
}

Value celu(const Value& x, double alpha) {
  BT_REQUIRE(alpha > 0, fmt::format("celu: alpha must be > 0, got {}", alpha));
  return select(x > 0, x, alpha * expm1(below_zero(x) / alpha));
}

Value elu(const Value& x, double alpha) {
  return select(x > 0, x, alpha * expm1(below_zero(x)));
}

Value gelu(const Value& x, bool approximate) {
  return approximate ? gelu_tanh(x) : gelu_exact(x);
}

Value gelu_exact(const Value& x) { return 0.5 * x * (1 + erf(x / std::sqrt(2.0))); }

Value gelu_tanh(const Value& x) {
  constexpr double pi = 3.14159265358979323846;
  return 0.5 * x * (1 + tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

Value glu(const Value& x, std::int64_t axis) {
  const std::int64_t n = x.dim(axis);
  BT_REQUIRE(n % 2 == 0, fmt::format("glu: the axis must have an even size, got {}", n));
  const Value gate = sigmoid(slice_axis(x, axis, n / 2, n / 2));
  return slice_axis(x, axis, 0, n / 2) * gate;
}

Value hard_shrink(const Value& x, double lambda) { return select(abs(x) > lambda, x, 0); }

Value hard_sigmoid(const Value& x) { return clamp(x + 3, 0, 6) / 6; }

Value hard_swish(const Value& x) { return x * hard_sigmoid(x); }

Value hard_tanh(const Value& x, double low, double high) { return clamp(x, low, high); }

Value leaky_relu(const Value& x, double slope) { return select(x >= 0, x, slope * x); }

Value log_sigmoid(const Value& x) { return -softplus(-x); }

Value mish(const Value& x) { return x * tanh(softplus(x)); }

Value relu6(const Value& x) { return minimum(relu(x), 6); }

Value prelu(const Value& x, double slope) { return select(x >= 0, x, slope * x); }

Value selu(const Value& x) {
  constexpr double alpha = 1.6732632423543772848170429916717;
  constexpr double scale = 1.0507009873554804934193349852946;
  return scale * elu(x, alpha);
}

Value silu(const Value& x) { return x * sigmoid(x); }

Value soft_shrink(const Value& x, double lambda) {
  return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, 0));
}

Value soft_sign(const Value& x) { return x / (1 + abs(x)); }

Value softmin(const Value& x, std::int64_t axis) { return softmax(-x, axis); }

Value sparse_plus(const Value& x) {
  return select(x <= -1, 0, select(x >= 1, x, square(x + 1) / 4));
}

Value sparse_sigmoid(const Value& x) { return 0.5 * clamp(x + 1, 0, 2); }

Value squareplus(const Value& x, double b) { return 0.5 * (x + sqrt(square(x) + b)); }

Value tanh_shrink(const Value& x) { return x - tanh(x); }

}  // namespace braintrace::nn
