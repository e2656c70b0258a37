// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/optimizer_program.h"

#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"

namespace optimizer_program_test {

using namespace braintrace;

TEST_CASE("rules as IR take the steps of the optimiser") {
  const UpdateRule rules[] = {
      SGD{.lr = 0.1},
      SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1},
      SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true},
      Adam{.lr = 0.1, .weight_decay = 0.1},
      Adam{.lr = 0.1, .beta1 = 0, .beta2 = 0.5, .amsgrad = true},
      AdamW{.lr = 0.1},
      RMSprop{.lr = 0.1},
      RMSprop{.lr = 0.1, .momentum = 0.5, .centered = true, .weight_decay = 0.1},
      Lion{.lr = 0.1, .weight_decay = 0.1}};
  for (const UpdateRule& rule : rules) {
    CAPTURE(rule.index());
    Optimizer optimizer(rule);
    StateDict params = {{"w", random_normal(rng_key(1), {5}, DType::f64)}};
    Value w = params.at("w");
    std::map<std::string, Value> moments;
    for (const std::string& name : moment_names(rule))
      moments.emplace(name, zeros({5}, DType::f64));
    for (std::uint64_t t = 1; t <= 20; ++t) {
      const Array g = random_normal(rng_key(10 + t), {5}, DType::f64);
      params = optimizer.update(params, {{"w", g}});
      const OptimizerStep s =
          optimizer_step(rule, w, g, scalar(static_cast<double>(t), DType::f64), moments);
      w = w - learning_rate(rule) * s.step;
      moments = s.moments;
      const std::vector<double> got = w.array().to_doubles(),
                                want = params.at("w").to_doubles();
      for (std::size_t i = 0; i < want.size(); ++i)
        CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-9));
    }
    const StateDict kept = optimizer.state_dict();
    for (const auto& [name, value] : moments) CHECK(kept.contains(name + "/w"));
  }
}

}  // namespace optimizer_program_test
