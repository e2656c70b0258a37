// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/equations.h"

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"

namespace equations_test {

using namespace braintrace;

namespace {

std::vector<RelationEquations> of(const Algorithm& a, const char* kind = "single_rnn") {
  const auto model = nn::build_model(kind);
  init_all_states(*model);
  return update_equations(compile_etrace_graph(*model, {zeros({10})}), a);
}

}  // namespace

TEST_CASE("equations follow the coordinates of the rule") {
  const RelationEquations plain = of(D_RTRL{}).at(0);
  CHECK(plain.weight == "rnn/W/weight");
  CHECK(plain.recursion == std::vector<std::string>{"ε_t = D_t ε_{t-1} + df_t ⊗ x_t"});
  CHECK(plain.gradient == "∂L_t/∂W + s_t · (D_t ε_{t-1})");

  const RelationEquations filtered = of(EProp{.kappa_filter_decay = 0.5}).at(0);
  CHECK(filtered.recursion.at(1) == "F_t = 0.5 F_{t-1} + ε_t");
  CHECK(filtered.gradient == "∂L_t/∂W + s_t · (D_t ε_{t-1} + 0.5 F_{t-1})");

  const RelationEquations factors = of(pp_prop{.decay_or_rank = 0.75}).at(0);
  CHECK(factors.recursion.at(0) == "X_t = 0.75 X_{t-1} + x_t");

  CHECK(of(ThreeFactor{}).at(0).gradient == "s_t · ε_t");
  CHECK(of(UORO{}).at(0).gradient.find("θ_{t-1}") != std::string::npos);
  CHECK(of(BPTT{}).empty());
}

TEST_CASE("dense relations keep the full sensitivity") {
  bool seen = false;
  for (const RelationEquations& e : of(D_RTRL{}, "two_layer_gru")) {
    if (e.kind != "dense") continue;
    seen = true;
    CHECK(e.gradient == "∂L_t/∂W + s_t · (J_t ε_{t-1})");
  }
  CHECK(seen);
}

TEST_CASE("the legend says what D is") {
  const auto has = [](const Algorithm& a, const char* part) {
    for (const std::string& line : equation_legend(a))
      if (line.find(part) != std::string::npos) return true;
    return false;
  };
  CHECK(has(D_RTRL{}, "cut at mixing ops"));
  CHECK(has(SnAp{.n = 3}, "within 3 steps"));
  CHECK(has(BPTT{}, "no traces"));
}

}  // namespace equations_test
