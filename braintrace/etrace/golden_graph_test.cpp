// SPDX-License-Identifier: Apache-2.0
// The compiler's graph against recorded graphs of braintrace 0.2.6.
#include "braintrace/testing/golden_graph.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/golden_case.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/csv.h"

namespace golden_graph_test {

using namespace braintrace;

namespace {

// The largest entry of a transition's Jacobian that joins two different positions.
double largest_cross_entry(const ETraceGraph& g, const HiddenGroup& group,
                           const Array& x) {
  const auto call = g.module_info.jaxpr_call({x});
  std::vector<Array> hidden, constants;
  for (ValueId v : group.hidden_invars()) hidden.push_back(call.temps.at(v));
  for (ValueId v : group.transition_constants) constants.push_back(call.temps.at(v));
  const Array full = group.full_jacobian(hidden, constants);
  const std::int64_t s = group.num_state(), p = num_elements(group.varshape());
  double worst = 0;
  for (std::int64_t i = 0; i < full.size(); ++i)
    if (i / (s * p * s) != i / s % p) worst = std::max(worst, std::abs(full.at(i)));
  return worst;
}

Array first_input(const testing::GoldenCase& c) {
  Shape shape(c.inputs.shape().begin() + 1, c.inputs.shape().end());
  const Ints zero(c.inputs.shape().size(), 0), one(c.inputs.shape().size(), 1);
  Shape size = c.inputs.shape();
  size[0] = 1;
  const Array x = c.inputs.sliced(zero, size, one).reshaped(shape);
  return is_float(x.dtype()) ? x.astype(DType::f64) : x;
}

}  // namespace

TEST_CASE(
    "by default every recorded model compiles to position-local groups and verdicts") {
  std::size_t groups = 0, verdicts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens")) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().filename().string();
    INFO(name);
    try {
      const auto c = testing::parse_golden(name, read_file(entry.path().string()));
      const auto model = nn::build_model(c.text);
      // Lanes are a batch.
      init_all_states(*model, {.batch_size = c.batch, .dtype = DType::f64});
      load_state_dict(*model, c.weights);
      const Array x = first_input(c);
      const ETraceGraph g = compile_etrace_graph(*model, {x});
      CHECK(g.verdicts.size() ==
            g.module_info.param_paths().size() + g.module_info.unused_params.size());
      verdicts += g.verdicts.size();
      for (const ParameterVerdict& v : g.verdicts) CHECK(!v.reason.empty());
      for (const HiddenGroup& group : g.hidden_groups) {
        if (group.descent) continue;
        ++groups;
        CHECK(largest_cross_entry(g, group, x) <= tol::f64);
      }
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
  CHECK(groups >= 100);
  CHECK(verdicts >= 150);
}

TEST_CASE("compat compiles every recorded model to the recorded graph") {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens")) {
    if (entry.path().extension() != ".json") continue;
    ++seen;
    INFO(entry.path().filename().string());
    try {
      CHECK(testing::graph_difference(read_file(entry.path().string())) == "");
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
  CHECK(seen >= 100);
}

}  // namespace golden_graph_test
