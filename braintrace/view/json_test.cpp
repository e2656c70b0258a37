// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/json.h"

#include <fstream>
#include <iterator>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/recorded_json.h"

namespace json_test {

using namespace braintrace;
using nlohmann::json;

namespace {

json graph_of(const std::string& text, const Shape& input,
              const CompileOptions& options = {}) {
  const auto model = nn::build_model(text);
  init_all_states(*model);
  return testing::parse_json(
      to_json(compile_etrace_graph(*model, {zeros(input)}, options)));
}

// Removes what the recorded runs do not have.
json recorded_fields(json j) {
  j.erase("verdicts");
  j.erase("cuts");
  for (json& r : j["relations"]) {
    r.erase("kind");
    r.erase("reason");
  }
  for (json& r : j["diagnostics"]) r.erase("message");
  return j;
}

}  // namespace

TEST_CASE("compat gives the recorded graph of the reference, field by field") {
  for (const char* name : {"tut_single_drtrl", "tut_twolayer_drtrl", "tut_conv_drtrl"}) {
    CAPTURE(name);
    std::ifstream file(std::string(BT_TESTS_DIR) + "/goldens/" + name + ".json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const json run = testing::parse_json(text);
    Shape input = run["inputs"]["shape"].get<Shape>();
    input.erase(input.begin());
    CHECK(recorded_fields(graph_of(text, input, compat())) == run["expected"]["graph"]);
  }
}

TEST_CASE("verdicts and cuts are part of the summary") {
  const json j = graph_of("conv_rnn", {1, 28, 28});
  CHECK(j["verdicts"].size() == 3);
  CHECK(j["verdicts"][0]["path"] == "conv/weight");
  CHECK(j["verdicts"][0]["verdict"] == "dense");
  CHECK(j["cuts"].size() == 1);
  CHECK(j["cuts"][0]["from"] == json::array({"rnn/h"}));
  CHECK(j["relations"][0]["kind"] == "dense");
}

}  // namespace json_test
