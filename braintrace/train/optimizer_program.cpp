// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/optimizer_program.h"

#include <cmath>

#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

using Moments = std::map<std::string, Value>;

std::vector<std::string> names(const SGD& r) {
  return r.momentum > 0 ? std::vector<std::string>{"m"} : std::vector<std::string>{};
}
std::vector<std::string> names(const Adam& r) {
  return r.amsgrad ? std::vector<std::string>{"m", "v", "v_max"}
                   : std::vector<std::string>{"m", "v"};
}
std::vector<std::string> names(const AdamW&) { return {"m", "v"}; }
std::vector<std::string> names(const RMSprop& r) {
  std::vector<std::string> out = {"v"};
  if (r.centered) out.emplace_back("mean");
  if (r.momentum > 0) out.emplace_back("m");
  return out;
}
std::vector<std::string> names(const Lion&) { return {"m"}; }

Value decayed(const Value& g, double decay, const Value& w) {
  return decay > 0 ? g + decay * w : g;
}

Value mixed(double share, const Value& old, const Value& now) {
  return share * old + (1 - share) * now;
}

Value step(const SGD& r, const Value& w, const Value& gradient, const Value&,
           Moments& m) {
  const Value g = decayed(gradient, r.weight_decay, w);
  if (r.momentum == 0) return g;
  m.at("m") = g + r.momentum * m.at("m");
  return r.nesterov ? g + r.momentum * m.at("m") : m.at("m");
}

// 1 - share^count, without the cancellation of that difference.
Value correction(double share, const Value& count) {
  return -expm1(count * std::log(share));
}

Value adam_step(double beta1, double beta2, double eps, const Value& g,
                const Value& count, Moments& m) {
  m.at("m") = mixed(beta1, m.at("m"), g);
  m.at("v") = mixed(beta2, m.at("v"), g * g);
  const Value mean = beta1 > 0 ? m.at("m") / correction(beta1, count) : m.at("m");
  Value power = beta2 > 0 ? m.at("v") / correction(beta2, count) : m.at("v");
  if (m.contains("v_max")) power = m.at("v_max") = maximum(m.at("v_max"), power);
  return mean / (sqrt(power) + eps);
}

Value step(const Adam& r, const Value& w, const Value& g, const Value& count,
           Moments& m) {
  return adam_step(r.beta1, r.beta2, r.eps, decayed(g, r.weight_decay, w), count, m);
}

Value step(const AdamW& r, const Value& w, const Value& g, const Value& count,
           Moments& m) {
  return decayed(adam_step(r.beta1, r.beta2, r.eps, g, count, m), r.weight_decay, w);
}

Value step(const RMSprop& r, const Value& w, const Value& gradient, const Value&,
           Moments& m) {
  const Value g = decayed(gradient, r.weight_decay, w);
  m.at("v") = mixed(r.alpha, m.at("v"), g * g);
  Value power = m.at("v");
  if (r.centered) {
    m.at("mean") = mixed(r.alpha, m.at("mean"), g);
    power = relu(power - m.at("mean") * m.at("mean"));
  }
  const Value plain = g / sqrt(power + r.eps);
  if (r.momentum == 0) return plain;
  return m.at("m") = plain + r.momentum * m.at("m");
}

Value step(const Lion& r, const Value& w, const Value& g, const Value&, Moments& m) {
  const Value direction = sign(mixed(r.beta1, m.at("m"), g));
  m.at("m") = mixed(r.beta2, m.at("m"), g);
  return decayed(direction, r.weight_decay, w);
}

}  // namespace

double learning_rate(const UpdateRule& rule) {
  return std::visit([](const auto& r) { return r.lr; }, rule);
}

std::vector<std::string> moment_names(const UpdateRule& rule) {
  return std::visit([](const auto& r) { return names(r); }, rule);
}

OptimizerStep optimizer_step(const UpdateRule& rule, const Value& w, const Value& g,
                             const Value& count, const Moments& moments) {
  OptimizerStep out{g, moments};
  out.step =
      std::visit([&](const auto& r) { return step(r, w, g, count, out.moments); }, rule);
  return out;
}

}  // namespace braintrace
