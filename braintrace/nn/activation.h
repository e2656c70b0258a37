// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of one value, picked by name or given as code: {.activation = "tanh"}.
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/ir/value.h"

namespace braintrace::nn {

class Activation {
 public:
  Activation(const char* name) : Activation(std::string_view(name)) {}  // NOLINT
  Activation(const std::string& name)                                   // NOLINT
      : Activation(std::string_view(name)) {}
  Activation(std::string_view name);  // NOLINT: UserError lists the known names
  template <class F>
  requires std::invocable<F, const Value&> &&(!std::same_as<F, Activation>)Activation(F f)
      : f_(std::move(f)) {}  // NOLINT

  Value operator()(const Value& x) const { return f_(x); }

 private:
  std::function<Value(const Value&)> f_;
};

std::vector<std::string> activation_names();

// Beyond abs, relu, sigmoid, softmax, softplus, tanh, ... of ops.h. s = sigmoid.
Value celu(const Value& x, double alpha = 1);  // x, below 0: alpha (e^(x/alpha) - 1)
Value elu(const Value& x, double alpha = 1);   // x, below 0: alpha (e^x - 1)
// x (1 + erf(x / sqrt 2)) / 2, unless told otherwise in its usual approximation by tanh.
Value gelu(const Value& x, bool approximate = true);
Value gelu_exact(const Value& x);                        // the one with erf
Value gelu_tanh(const Value& x);                         // the approximation
Value glu(const Value& x, std::int64_t axis = -1);       // first half * s(second half)
Value hard_shrink(const Value& x, double lambda = 0.5);  // 0 where |x| <= lambda
Value hard_sigmoid(const Value& x);                      // clamp(x + 3, 0, 6) / 6
Value hard_swish(const Value& x);                        // x hard_sigmoid(x)
Value hard_tanh(const Value& x, double low = -1, double high = 1);  // clamp(x, low, high)
Value leaky_relu(const Value& x, double slope = 0.01);
Value log_sigmoid(const Value& x);
Value mish(const Value& x);                        // x tanh(softplus(x))
Value relu6(const Value& x);                       // clamp(x, 0, 6)
Value prelu(const Value& x, double slope = 0.25);  // x, below 0: slope x
Value selu(const Value& x);  // 1.0507 x, below 0: 1.0507 * 1.6733 (exp(x) - 1)
Value silu(const Value& x);  // x s(x)
Value soft_shrink(const Value& x, double lambda = 0.5);  // x moved to 0 by lambda
Value soft_sign(const Value& x);                         // x / (1 + |x|)
Value softmin(const Value& x, std::int64_t axis = -1);   // softmax(-x)
Value sparse_plus(const Value& x);     // 0 below -1, (x + 1)^2 / 4 below 1, then x
Value sparse_sigmoid(const Value& x);  // clamp((x + 1) / 2, 0, 1)
Value squareplus(const Value& x, double b = 4);  // (x + sqrt(x^2 + b)) / 2
Value tanh_shrink(const Value& x);               // x - tanh(x)

}  // namespace braintrace::nn
