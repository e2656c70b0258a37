// SPDX-License-Identifier: Apache-2.0
// Numbers of the table are checked by the program `parity`; here, names and structure.
#include <doctest/doctest.h>

#include "braintrace/testing/parity_table_impl.h"
#include "braintrace/testing/recorded_json.h"

namespace braintrace::testing::parity_table_test {
namespace {

using internal::algorithm_of;
using internal::parse_entry_name;
using nlohmann::json;

std::string coordinates(const char* entry) {
  return algorithm_of(parse_entry_name(entry)).config.describe();
}

// One model of the table with one of its entries.
json small_table(const char* model, const char* entry) {
  const json all = read_json(BT_TESTS_DIR "/data/golden_algorithms.json");
  json m = all.at("models").at(model);
  m["cases"] = {{entry, m.at("cases").at(entry)}};
  return {{"models", {{model, m}}}};
}

std::string first_line(const json& table) {
  return describe(check_algorithm_table("t", json_text(table)).at(0), false);
}

}  // namespace

TEST_CASE("the numbers of a rule are read from its name") {
  CHECK(coordinates("pp_059_ss") ==
        "ETraceConfig(trace_factorization=io_factorized, "
        "temporal_recursion=(scalar_leak, jacobian), decay=(0.59, 0.59))");
  CHECK(coordinates("pp_095_025_win2") ==
        "ETraceConfig(trace_factorization=io_factorized, "
        "temporal_recursion=(scalar_leak, jacobian), decay=(0.95, 0.25))");
  CHECK(coordinates("pp_rank3_ms") ==
        "ETraceConfig(trace_factorization=io_factorized, "
        "temporal_recursion=(scalar_leak, jacobian), decay=(0.5, 0.5))");
  CHECK(coordinates("eprop_k085_ss") == "ETraceConfig(trace_filter=kappa, kappa=0.85)");
  CHECK(coordinates("leak075_ms") ==
        "ETraceConfig(temporal_recursion=scalar_leak, decay=0.75)");
  CHECK(coordinates("snap12_ss") ==
        "ETraceConfig(recurrence_scope=sparse_n, sparse_n=12)");
  CHECK(coordinates("io_coupled_08_ss").find("decay=(0.8, 0.8)") != std::string::npos);
}

TEST_CASE("a method and a window are read from the end of a name") {
  CHECK(parse_entry_name("d_rtrl_win12").window == 12);
  CHECK(parse_entry_name("d_rtrl_win12").rule == "d_rtrl");
  CHECK(parse_entry_name("d_rtrl_ss_mask_mean").mean);
  CHECK(parse_entry_name("pp_09_ms").method == VjpMethod::multi_step);
}

TEST_CASE("names that are no rule are refused") {
  for (const char* name :
       {"adam_ss", "pp_ss", "pp_09_08_07_ss", "pp_x9_ss", "leak_ss", "snap2x_ss",
        "eprop_feedback_ss", "d_rtrl_win3x", "d_rtrl_win0", "io_coupled_ss", "pp_9_ss"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(coordinates(name), UserError);
  }
}

TEST_CASE("recorded groups, relations and neighbourhoods are compared") {
  json t = small_table("GRUCell", "d_rtrl_ss");
  CHECK(first_line(t).starts_with("ok"));
  t["models"]["GRUCell"]["relations"] = {"Wh/weight", "Wz/weight"};
  CHECK(first_line(t).find("relations: ") != std::string::npos);
  t = small_table("LSTMCell", "d_rtrl_ss");
  t["models"]["LSTMCell"]["groups"] = {{"c", "h"}};
  CHECK(first_line(t).find("groups: ") != std::string::npos);
  t = small_table("sparse_ring", "snap1_ss");
  CHECK(first_line(t).starts_with("ok"));
  t["models"]["sparse_ring"]["cases"]["snap1_ss"]["K"] = 2;
  CHECK(first_line(t).find("K: 1, recorded is 2") != std::string::npos);
}

TEST_CASE("an initial state is loaded, or refused") {
  json t = small_table("leaky_rnn", "d_rtrl_ss");
  t["models"]["leaky_rnn"]["h0"] = json(2, json(4, 0.0));
  CHECK(first_line(t).starts_with("ok"));
  t["models"]["leaky_rnn"]["h0"] = json(2, json(4, 0.5));
  CHECK(first_line(t).starts_with("FAIL"));
  t["models"]["leaky_rnn"]["h0"] = "ones";
  CHECK(first_line(t).find("h0: must be") != std::string::npos);
  t["models"]["leaky_rnn"]["h0"] = {{"h", json(3, json(4, 0.0))}};
  CHECK(first_line(t).starts_with("FAIL"));
}

}  // namespace braintrace::testing::parity_table_test
