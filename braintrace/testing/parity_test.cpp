// SPDX-License-Identifier: Apache-2.0
// The replay itself is checked by the program `parity` on tests/goldens; here, that it
// fails when it should.
#include "braintrace/testing/parity.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/testing/parity_impl.h"
#include "braintrace/testing/recorded_json.h"

namespace braintrace::testing::parity_test {
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
  j["loss"]["time_reduction"] = "mean";
  CHECK(describe_case(j).find("'time_reduction' must be sum") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["weights"].erase("w");
  CHECK(describe_case(j).find("the model has the state 'w'") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["expected"].erase("outputs");
  CHECK(describe_case(j).find("'outputs' is missing") != std::string::npos);
  CHECK(describe(check_case("x", "{"), false) == "FAIL x  x: not JSON, or cut off");
  CHECK(describe(check_case("x", "[]"), false) == "FAIL x  x: not a JSON object");
}

TEST_CASE("a case without a field that is needed fails with its name") {
  nlohmann::json j = golden("op_two_state_drtrl");
  j["expected"]["graph"] = nlohmann::json::object();
  CHECK(describe_case(j).find("'hidden_groups' not found") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["expected"]["graph"]["diagnostics"][0].erase("level");
  CHECK(describe_case(j).find("'level' not found") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["expected"]["etrace_final"][0].erase("kind");
  CHECK(describe_case(j).find("'kind' not found") != std::string::npos);
  j = golden("alg_dni_chunk2");
  j["synthesizer"]["b"].erase("0");
  CHECK(describe_case(j).find("'0' not found") != std::string::npos);
  j = golden("alg_eprop_random");
  j["random_feedback_B"]["first"] = j["random_feedback_B"]["0"];
  CHECK(describe_case(j).find("a group must be a whole number") != std::string::npos);
}

TEST_CASE("a case may leave out what its algorithm already says") {
  nlohmann::json j = golden("alg_snap2");
  j["algorithm"].erase("resolved_config");
  j["algorithm"].erase("vjp_method");
  CHECK(describe_case(j).starts_with("ok"));
}

TEST_CASE("a coordinate other than the recorded one is found") {
  nlohmann::json j = golden("alg_snap2");
  j["algorithm"]["resolved_config"]["sparse_n"] = 3;
  CHECK(describe_case(j).find("resolved_config: ") != std::string::npos);
}

TEST_CASE("a policy for control flow reaches graph and learner") {
  nlohmann::json j = golden("cf_scan_unroll_leaky_drtrl");
  j["algorithm"]["args"] = {{"control_flow", {{"scan_unroll_limit", 4}}}};
  CHECK(describe_case(j).find("graph: ") != std::string::npos);  // 5 loops stay a scan
  j["algorithm"]["args"] = {{"control_flow", {{"scan_unroll_limit", 5}}}};
  CHECK(describe_case(j).starts_with("ok"));
}

TEST_CASE("rounding is allowed for by what a rule does, not by its name") {
  const auto loose = [](const char* text) {
    return internal::amplifies_rounding(algorithm_from_json(text));
  };
  CHECK(loose(R"({"class": "UORO"})"));
  CHECK(loose(R"({"class": "SnAp", "args": {"n": 2}})"));
  CHECK(loose(R"({"class": "D_RTRL", "args": {"config": {
                    "recurrence_scope": "sparse_n", "sparse_n": 2}}})"));
  CHECK(loose(R"({"class": "ETraceConfig", "args": {"config": {
                    "trace_factorization": "random_projection",
                    "recurrence_scope": "coupled"}}})"));
  CHECK_FALSE(loose(R"({"class": "OSTLRecurrent"})"));
  CHECK_FALSE(loose(R"({"class": "SnAp", "args": {"n": 1}})"));
}

TEST_CASE("every recorded fact about graph, objective and spikes is compared") {
  nlohmann::json j = golden("snn_alif_eprop_kappa");
  CHECK(describe_case(j).starts_with("ok"));
  j["expected"]["checks"]["spike_rate"] = 0.34;
  CHECK(describe_case(j).find("spike_rate: 16 of 50 spike") != std::string::npos);
  j["expected"]["checks"]["spike_rate"] = 0.32;
  j["expected"]["checks"]["bptt_objective"] = 1;
  CHECK(describe_case(j).ends_with("bptt_objective"));
  j = golden("op_two_state_drtrl");
  j["expected"]["graph"]["dynamic_states"] = {"h"};
  CHECK(describe_case(j).find("/dynamic_states") != std::string::npos);
  j = golden("op_two_state_drtrl");
  j["expected"]["graph"]["diagnostics"].back()["primitive"] = "etp_mm";
  CHECK(describe_case(j).find("/primitive: wanted \"etp_mm\", got \"etp_mv\"") !=
        std::string::npos);
}

TEST_CASE("a spike that was not recorded is found") {
  nlohmann::json j = golden("snn_lif_expcu_drtrl");
  for (nlohmann::json& v : j["expected"]["hidden_per_step"]["neu/V"]["data"])
    if (v.get<double>() > 1) v = 0.5;
  CHECK(describe_case(j).find("spike trains differ") != std::string::npos);
}

TEST_CASE("lanes give what a batch gives") {
  nlohmann::json j = golden("tut_single_tanh_drtrl_b3");
  j["mode"] = "vmap";
  j["expected"].erase("graph");  // per lane, the graph is that of one sample
  CHECK(check_case("x", testing::json_text(j)).passed());
}

TEST_CASE("what the reference projects for nobody needs no counterpart") {
  nlohmann::json j = golden("alg_uoro_single");
  j["uoro_projection"]["1"] = j["uoro_projection"]["0"];
  nlohmann::json row = j["expected"]["etrace_final"][0];
  REQUIRE(row["kind"] == "s_tilde");
  row["group"] = 1;
  j["expected"]["etrace_final"].push_back(row);
  CHECK(check_case("x", testing::json_text(j)).passed());
}

TEST_CASE("texts are told apart by their fields") {
  CHECK(classify_golden(R"({"expected": {}})") == GoldenKind::golden_case);
  CHECK(classify_golden(R"({"models": {}})") == GoldenKind::algorithm_table);
  CHECK(classify_golden(R"({"refusals": {}})") == GoldenKind::other);
  CHECK(classify_golden("[3]") == GoldenKind::other);
  CHECK(classify_golden("no json") == GoldenKind::malformed);
  CHECK(classify_golden(R"({"expected": {"outputs": [1, 2)") == GoldenKind::malformed);
  CHECK(classify_golden("") == GoldenKind::malformed);
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

}  // namespace braintrace::testing::parity_test
