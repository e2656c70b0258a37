// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/metrics.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

struct Products {
  double ab = 0, aa = 0, bb = 0;
  double cosine() const {
    return aa == 0 || bb == 0 ? 0 : ab / (std::sqrt(aa) * std::sqrt(bb));
  }
};

Products products(const Array& a, const Array& b) {
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  Products p;
  for (std::size_t i = 0; i < x.size(); ++i) {
    p.ab += x[i] * y[i];
    p.aa += x[i] * x[i];
    p.bb += y[i] * y[i];
  }
  return p;
}

void require_alike(const StateDict& a, const StateDict& b) {
  for (const auto& [path, g] : b)
    BT_REQUIRE(a.count(path),
               fmt::format("gradient_cosine: only the second gradient has '{}'", path));
  for (const auto& [path, g] : a) {
    const auto it = b.find(path);
    BT_REQUIRE(it != b.end(),
               fmt::format("gradient_cosine: only the first gradient has '{}'", path));
    BT_REQUIRE(g.shape() == it->second.shape(),
               fmt::format("gradient_cosine: '{}' has shapes {} and {}", path,
                           to_string(g.shape()), to_string(it->second.shape())));
  }
}

}  // namespace

Value accuracy(const Value& scores, const Value& labels) {
  BT_REQUIRE_KIND(
      labels.dtype() == DType::i32, ErrorKind::type,
      fmt::format("accuracy: labels must be i32, got {}", to_string(labels.dtype())));
  BT_REQUIRE(scores.rank() >= 1, "accuracy: scores need a class axis, got a scalar");
  Shape lead = scores.shape();
  lead.pop_back();
  BT_REQUIRE(labels.shape() == lead,
             fmt::format("accuracy: labels must be {}, got {}", to_string(lead),
                         to_string(labels.shape())));
  return mean(astype(equal(argmax(scores), labels), DType::f32));
}

Value accuracy_over_time(const Value& scores, const Value& labels) {
  BT_REQUIRE(
      scores.rank() >= 2,
      fmt::format("accuracy_over_time: scores must be [time, ..., classes], got {}",
                  to_string(scores.shape())));
  return accuracy(mean(scores, {.axes = {0}}), labels);
}

Value firing_rate(const Value& spikes, double dt) {
  BT_REQUIRE(dt > 0, fmt::format("firing_rate: dt must be > 0 ms, got {}", dt));
  const Value s = is_float(spikes.dtype()) ? spikes : astype(spikes, DType::f32);
  return mean(s) * (1000 / dt);
}

double gradient_cosine(const StateDict& a, const StateDict& b) {
  require_alike(a, b);
  Products total;
  for (const auto& [path, g] : a) {
    const Products p = products(g, b.at(path));
    total = {total.ab + p.ab, total.aa + p.aa, total.bb + p.bb};
  }
  return total.cosine();
}

std::map<std::string, double> gradient_cosines(const StateDict& a, const StateDict& b) {
  require_alike(a, b);
  std::map<std::string, double> out;
  for (const auto& [path, g] : a) out.emplace(path, products(g, b.at(path)).cosine());
  return out;
}

}  // namespace braintrace
