// SPDX-License-Identifier: Apache-2.0
// The replay itself is checked by the program `parity` on tests/goldens; here, that it
// fails when it should.
#include "braintrace/testing/parity.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/testing/recorded_json.h"

namespace braintrace::testing {
namespace {

nlohmann::json golden(const std::string& name) {
  return testing::read_json(BT_TESTS_DIR "/goldens/" + name + ".json");
}

std::string describe_case(const nlohmann::json& j) {
  return describe(check_case("x", testing::json_text(j)), false);
}

}  // namespace

TEST_CASE("a changed number is found in the field that holds it") {
  const char* fields[] = {"outputs", "losses"};
  for (const char* field : fields) {
    nlohmann::json j = golden("op_two_state_drtrl");
    nlohmann::json& v = j["expected"][field];
    nlohmann::json& first = v.is_array() ? v[0] : v["data"][0];
    first = first.get<double>() + 0.5;
    CHECK(describe_case(j).starts_with("FAIL"));
    CHECK(describe_case(j).ends_with(field));
  }
  for (const char* field : {"final_hidden", "hidden_per_step", "bptt_grad_sum"}) {
    nlohmann::json j = golden("op_two_state_drtrl");
    nlohmann::json& v = j["expected"][field].begin().value()["data"].back();
    v = v.get<double>() + 0.5;
    const std::string line = describe_case(j);
    CAPTURE(line);
    CHECK(line.starts_with("FAIL"));
    CHECK(line.find(field) != std::string::npos);
  }
}

TEST_CASE("a changed graph is found") {
  nlohmann::json j = golden("op_two_state_drtrl");
  j["expected"]["graph"]["relations"][0]["primitive"] = "etp_conv";
  CHECK(describe_case(j).find("FAIL x  graph: replace /relations/0/primitive") == 0);
  j = golden("op_two_state_drtrl");
  j["expected"]["graph"]["relations"] = 3;
  CHECK(describe_case(j).starts_with("FAIL"));
}

TEST_CASE("a case that cannot be run fails with its reason") {
  nlohmann::json j = golden("op_two_state_drtrl");
  j["model"]["kind"] = "three_state";
  CHECK(describe_case(j).find("unknown kind 'three_state'") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["loss"]["kind"] = "hinge";
  CHECK(describe_case(j).find("unknown loss 'hinge'") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["weights"].erase("w");
  CHECK(describe_case(j).find("the model has the state 'w'") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["expected"].erase("outputs");
  CHECK(describe_case(j).find("'outputs' is missing") != std::string::npos);
  CHECK(describe(check_case("x", "{"), false) == "FAIL x  x: not a JSON object");
}

TEST_CASE("lanes give what a batch gives") {
  nlohmann::json j = golden("tut_single_tanh_drtrl_b3");
  j["mode"] = "vmap";
  j["expected"].erase("graph");  // per lane, the graph is that of one sample
  CHECK(check_case("x", testing::json_text(j)).passed());
}

TEST_CASE("texts are told apart by their fields") {
  CHECK(classify_golden(R"({"expected": {}})") == GoldenKind::golden_case);
  CHECK(classify_golden(R"({"models": {}})") == GoldenKind::algorithm_table);
  CHECK(classify_golden(R"({"refusals": {}})") == GoldenKind::other);
  CHECK(classify_golden("no json") == GoldenKind::other);
}

TEST_CASE("NaN differs from every number and a shape must match") {
  const Array nan = full({1}, std::nan(""), DType::f64), one = ones({1}, DType::f64);
  CHECK(compare("f", nan, one, {}).share == INFINITY);
  CHECK(compare("f", one, one, {}).share == 0);
  CHECK_THROWS_AS(compare("f", one, ones({2}, DType::f64), {}), UserError);
}

TEST_CASE("a result without a compared field has not passed") {
  CHECK_FALSE(ParityResult{.name = "x"}.passed());
}

}  // namespace braintrace::testing
