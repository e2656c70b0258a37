// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/algorithm.h"

#include <filesystem>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/algo/graph_options.h"
#include "braintrace/base/error.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/train/csv.h"

namespace algorithm_test {

using namespace braintrace;
using enum TraceFactorization;
using Io = std::pair<double, double>;

namespace {

Io decays(const Algorithm& a) { return {*a.config.decay().x, *a.config.decay().f}; }

template <class F>
ErrorKind kind_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.kind();
  }
  FAIL("accepted");
  return {};
}

}  // namespace

TEST_CASE("presets stand at their coordinates") {
  const auto describe = [](const Algorithm& a) { return a.config.describe(); };
  CHECK(describe(D_RTRL{}) == "ETraceConfig()");
  CHECK(describe(pp_prop{.decay_or_rank = 0.9}) ==
        "ETraceConfig(trace_factorization=io_factorized, "
        "temporal_recursion=(scalar_leak, jacobian), decay=(0.9, 0.9))");
  CHECK(describe(OSTLFeedforward{}) ==
        "ETraceConfig(trace_factorization=io_factorized, "
        "temporal_recursion=(scalar_leak, jacobian), decay=(1e-06, 1e-06))");
  CHECK(describe(OSTLRecurrent{}) == "ETraceConfig(recurrence_scope=coupled)");
  CHECK(describe(SnAp{.n = 1}) == "ETraceConfig(recurrence_scope=coupled)");
  CHECK(describe(SnAp{}) == "ETraceConfig(recurrence_scope=sparse_n, sparse_n=2)");
  CHECK(describe(EProp{}) == "ETraceConfig()");
  CHECK(describe(EProp{
            .feedback = "random", .kappa_filter_decay = 0.7, .random_feedback_key = 7}) ==
        "ETraceConfig(learning_signal=random_feedback, trace_filter=kappa, kappa=0.7)");
  CHECK(describe(ThreeFactor{}) == "ETraceConfig(learning_signal=modulatory)");
  CHECK(describe(DNI{}) == "ETraceConfig(learning_signal=bootstrapped)");
  CHECK(describe(UORO{}) ==
        "ETraceConfig(trace_factorization=random_projection, recurrence_scope=coupled)");
}

TEST_CASE("presets choose their engine and method") {
  CHECK(Algorithm(D_RTRL{}).engine == Engine::param_dim);
  CHECK(Algorithm(D_RTRL{}).vjp_method == VjpMethod::single_step);
  CHECK(Algorithm(pp_prop{.decay_or_rank = 5}).engine == Engine::io_dim);
  CHECK(Algorithm(UORO{}).engine == Engine::random_projection);
  CHECK(Algorithm(UORO{}).vjp_method == VjpMethod::multi_step);
  CHECK(Algorithm(DNI{}).vjp_method == VjpMethod::multi_step);
  CHECK(Algorithm(DNI{}).options.takes_synthesizer);
  CHECK(Algorithm(Hybrid{.decay_or_rank = 0.9}).engine == Engine::hybrid);
  CHECK(Algorithm(ExactRTRL{}).engine == Engine::exact_rtrl);
  CHECK(Algorithm(BPTT{}).engine == Engine::bptt);
  CHECK(Algorithm(BPTT{}).vjp_method == VjpMethod::multi_step);
}

TEST_CASE("a rank stands for a decay, on each side of its own") {
  CHECK(decays(pp_prop{.decay_or_rank = 5}) == Io{4.0 / 6, 4.0 / 6});
  CHECK(decays(pp_prop{.decay_or_rank = {0.8, 0.3}}) == Io{0.8, 0.3});
  CHECK(decays(pp_prop{.decay_or_rank = {0.8, 3}}) == Io{0.8, 0.5});
  CHECK(decays(pp_prop{.decay_or_rank = 1}) == Io{0, 0});
  CHECK(decays(ES_D_RTRL{.decay_or_rank = std::size_t{3}}) == Io{0.5, 0.5});
}

TEST_CASE("decay and rank of an algorithm need equal sides") {
  const Algorithm a = pp_prop{.decay_or_rank = 0.9};
  CHECK(a.decay() == 0.9);
  CHECK(a.rank() == 19);
  CHECK(Algorithm(pp_prop{.decay_or_rank = 7}).rank() == 7);
  CHECK_THROWS_WITH_AS(Algorithm(pp_prop{.decay_or_rank = {0.9, 0.5}}).decay(),
                       "pp_prop: decay needs two equal smoothing factors, got "
                       "ETraceConfig(trace_factorization=io_factorized, "
                       "temporal_recursion=(scalar_leak, jacobian), decay=(0.9, 0.5))",
                       UserError);
  CHECK_THROWS_AS(Algorithm(D_RTRL{}).decay(), UserError);
}

TEST_CASE("SnAp asks for anchored ops, also as a coordinate and with n = 1") {
  CHECK(Algorithm(SnAp{.n = 1}).options.needs_anchors);
  CHECK(!Algorithm(OSTLRecurrent{}).options.needs_anchors);
  const Algorithm a =
      ETraceConfig::make({.recurrence_scope = RecurrenceScope::sparse_n, .sparse_n = 2});
  CHECK(a.options.needs_anchors);
}

TEST_CASE("a config converts to the engine of its factorization") {
  CHECK(Algorithm(ETraceConfig()).engine == Engine::param_dim);
  CHECK(
      Algorithm(ETraceConfig::make({.trace_factorization = io_factorized, .decay = 0.9}))
          .engine == Engine::io_dim);
  const Algorithm random =
      ETraceConfig::make({.trace_factorization = random_projection,
                          .recurrence_scope = RecurrenceScope::coupled});
  CHECK(random.engine == Engine::random_projection);
  CHECK(random.vjp_method == VjpMethod::multi_step);
}

TEST_CASE("a config wins over decay_or_rank") {
  const auto config =
      ETraceConfig::make({.trace_factorization = io_factorized, .decay = 0.5});
  CHECK(decays(pp_prop{.decay_or_rank = 0.9, .config = config}) == Io{0.5, 0.5});
}

// --- errors ---------------------------------------------------------------------------

TEST_CASE("a decay lies in the half-open unit interval") {
  CHECK_THROWS_WITH_AS(pp_prop{.decay_or_rank = 1.0},
                       "decay_or_rank: a decay must be in [0, 1), got 1", UserError);
  CHECK_THROWS_WITH_AS((pp_prop{.decay_or_rank = {0.5, -0.1}}),
                       "decay_or_rank: a decay must be in [0, 1), got -0.1", UserError);
}

TEST_CASE("a rank is positive") {
  CHECK_THROWS_WITH_AS(pp_prop{.decay_or_rank = 0},
                       "decay_or_rank: a rank must be > 0, got 0", UserError);
}

TEST_CASE("pp_prop and Hybrid need decay_or_rank") {
  CHECK_THROWS_WITH_AS(Algorithm(pp_prop{}), "pp_prop: decay_or_rank must be given",
                       UserError);
  CHECK(kind_of([] { Algorithm a = Hybrid{}; }) == ErrorKind::type);
}

TEST_CASE("kappa_filter_decay lies in the half-open unit interval") {
  CHECK_THROWS_WITH_AS(Algorithm(EProp{.kappa_filter_decay = 1}),
                       "EProp: kappa_filter_decay must be in [0, 1), got 1", UserError);
}

TEST_CASE("EProp knows two kinds of feedback") {
  CHECK_THROWS_WITH_AS(Algorithm(EProp{.feedback = "adaptive"}),
                       "EProp: feedback must be symmetric or random, got 'adaptive'",
                       UserError);
}

TEST_CASE("random feedback needs a key under every engine") {
  CHECK_THROWS_WITH_AS(Algorithm(EProp{.feedback = "random"}),
                       "EProp: random feedback needs random_feedback_key", UserError);
  const auto config =
      ETraceConfig::make({.trace_factorization = io_factorized,
                          .learning_signal = LearningSignal::random_feedback,
                          .decay = 0.9});
  CHECK_THROWS_AS(algorithm_from_config(config), UserError);
  CHECK(algorithm_from_config(config, {.random_feedback_key = 1}).engine ==
        Engine::io_dim);
}

TEST_CASE("a modulatory signal is single-step only") {
  CHECK_THROWS_WITH_AS(
      Algorithm(ThreeFactor{.vjp_method = VjpMethod::multi_step}),
      "ThreeFactor: a modulatory signal needs vjp_method single-step, got multi-step",
      UserError);
}

TEST_CASE("a bootstrapped signal needs DNI") {
  const auto config =
      ETraceConfig::make({.learning_signal = LearningSignal::bootstrapped});
  CHECK(kind_of([&] { Algorithm a = config; }) == ErrorKind::not_implemented);
  CHECK(kind_of([&] { Algorithm a = D_RTRL{.config = config}; }) ==
        ErrorKind::not_implemented);
}

TEST_CASE("engine and factorization of a config must agree") {
  const auto io =
      ETraceConfig::make({.trace_factorization = io_factorized, .decay = 0.9});
  CHECK_THROWS_WITH_AS(
      Algorithm(D_RTRL{.config = io}),
      "D_RTRL: the config must be of its engine per_param, got io_factorized", UserError);
  CHECK_THROWS_AS(Algorithm(pp_prop{.config = ETraceConfig()}), UserError);
}

TEST_CASE("SnAp needs n of at least 1") {
  CHECK_THROWS_WITH_AS(Algorithm(SnAp{.n = 0}), "SnAp: n must be >= 1, got 0", UserError);
}

TEST_CASE("projection_eps is positive, also as a float") {
  CHECK_THROWS_WITH_AS(Algorithm(UORO{.projection_eps = 0}),
                       "UORO: projection_eps must be > 0 in f32, got 0", UserError);
  CHECK_THROWS_AS(Algorithm(UORO{.projection_eps = 1e-60}), UserError);
}

TEST_CASE("traces are stored as floats") {
  CHECK(Algorithm(D_RTRL{.trace_dtype = DType::bf16}).options.trace_dtype == DType::bf16);
  CHECK(kind_of([] { Algorithm a = D_RTRL{.trace_dtype = DType::i32}; }) ==
        ErrorKind::type);
}

TEST_CASE("vjp_method has two names") {
  CHECK(vjp_method_from_string("multi-step") == VjpMethod::multi_step);
  CHECK_THROWS_WITH_AS(vjp_method_from_string("double-step"),
                       "vjp_method: must be single-step or multi-step, got 'double-step'",
                       UserError);
}

// --- names ----------------------------------------------------------------------------

TEST_CASE("every name gives its preset") {
  const AlgorithmArgs decay = {.decay_or_rank = 0.9};
  CHECK(algorithm_by_name("d_rtrl") == Algorithm(D_RTRL{}));
  CHECK(algorithm_by_name(" D_RTRL\n") == Algorithm(D_RTRL{}));
  CHECK(algorithm_by_name("pp_prop", decay) == Algorithm(pp_prop{.decay_or_rank = 0.9}));
  CHECK(algorithm_by_name("es_d_rtrl", decay).config ==
        algorithm_by_name("esd_rtrl", decay).config);
  CHECK(algorithm_by_name("eprop") == algorithm_by_name("e_prop"));
  CHECK(algorithm_by_name("ostl_recurrent") == Algorithm(OSTLRecurrent{}));
  CHECK(algorithm_by_name("ostl_feedforward") == Algorithm(OSTLFeedforward{}));
  CHECK(algorithm_by_name("uoro") == Algorithm(UORO{}));
  CHECK(algorithm_by_name("three_factor") == Algorithm(ThreeFactor{}));
  CHECK(algorithm_by_name("dni") == Algorithm(DNI{}));
  CHECK(algorithm_by_name("snap", {.n = 3}) == Algorithm(SnAp{.n = 3}));
  CHECK(algorithm_by_name("hybrid", decay) == Algorithm(Hybrid{.decay_or_rank = 0.9}));
  CHECK(algorithm_by_name("bptt") == Algorithm(BPTT{}));
  CHECK(algorithm_by_name("rtrl") == Algorithm(ExactRTRL{}));
  CHECK(algorithm_by_name("exact_rtrl") == Algorithm(ExactRTRL{}));
  CHECK(algorithm_names().size() == 16);
}

TEST_CASE("an unknown name lists the names") {
  CHECK_THROWS_WITH_AS(
      algorithm_by_name("adam"),
      "algorithm_by_name: no algorithm 'adam'; there are d_rtrl, pp_prop, es_d_rtrl, "
      "esd_rtrl, eprop, e_prop, ostl_recurrent, ostl_feedforward, snap, uoro, "
      "three_factor, dni, hybrid, rtrl, exact_rtrl, bptt",
      UserError);
}

TEST_CASE("an argument the preset does not take is a type error") {
  CHECK_THROWS_WITH_AS(algorithm_by_name("snap", {.decay_or_rank = 0.9}),
                       "SnAp: takes no argument 'decay_or_rank'; it takes n, "
                       "snap_max_jacobian_elements, trace_dtype, vjp_method",
                       UserError);
  CHECK(kind_of([] { algorithm_by_name("bptt", {.n = 2}); }) == ErrorKind::type);
}

TEST_CASE("arguments in JSON are checked") {
  const auto kind = [](const std::string& args) {
    return kind_of(
        [&] { algorithm_from_json(R"({"class": "pp_prop", "args": {)" + args + "}}"); });
  };
  CHECK(kind(R"("decay_or_rank": "0.9")") == ErrorKind::value);
  CHECK(kind(R"("decay_or_rank": [0.9])") == ErrorKind::value);
  CHECK(kind(R"("decay_or_rank": 1.5)") == ErrorKind::value);
  CHECK(kind(R"("decay_or_rank": 0.9, "vjp_method": "step")") == ErrorKind::value);
  CHECK(kind(R"("decay_or_rank": 0.9, "speed": 3)") == ErrorKind::type);
  CHECK(kind(R"("config": 3)") == ErrorKind::type);
  CHECK(kind_of([] { algorithm_from_json(R"({"class": "Adam"})"); }) == ErrorKind::value);
  CHECK(kind_of([] { algorithm_from_json("3"); }) == ErrorKind::value);
}

TEST_CASE("JSON takes the reference's arguments that choose no rule") {
  const Algorithm a = algorithm_from_json(
      R"({"class": "D_RTRL", "args": {"name": "mine", "trace_dtype": "bfloat16",
          "control_flow": {"cond": "opaque", "scan_unroll_limit": 4}, "config": null}})");
  CHECK(a.options.trace_dtype == DType::bf16);
  CHECK(algorithm_from_json(R"({"class": "SnAp", "args": {"trace_dtype": "float32"}})")
            .options.trace_dtype == DType::f32);
}

TEST_CASE("a policy for control flow keeps what JSON does not name") {
  const ControlFlowPolicy base = {.while_hidden = "error"};
  const auto policy = [&](const char* args) {
    return control_flow_from_json(
        std::string(R"({"class": "D_RTRL", "args": )") + args + "}", base);
  };
  CHECK(policy("{}") == base);
  CHECK(policy(R"({"control_flow": null})") == base);
  CHECK(policy(R"({"control_flow": {"scan_unroll_limit": 4}})") ==
        ControlFlowPolicy{.scan_unroll_limit = 4, .while_hidden = "error"});
  CHECK_THROWS_AS(policy(R"({"control_flow": {"cond": "melt"}})"), UserError);
  CHECK_THROWS_AS(policy(R"({"control_flow": {"speed": 1}})"), UserError);
  CHECK_THROWS_AS(policy(R"({"control_flow": 3})"), UserError);
}

TEST_CASE("JSON tells ranks from decays and counts true as rank 1") {
  const auto decay = [](const std::string& v) {
    return decays(algorithm_from_json(
        R"({"class": "pp_prop", "args": {"decay_or_rank": )" + v + "}}"));
  };
  CHECK(decay("3") == Io{0.5, 0.5});
  CHECK(decay("0.25") == Io{0.25, 0.25});
  CHECK(decay("[0.25, 3]") == Io{0.25, 0.5});
  CHECK(decay("true") == Io{0, 0});
}

TEST_CASE("every recorded algorithm resolves to its recorded coordinate") {
  std::set<std::string> classes;
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens")) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().filename().string();
    INFO(name);
    const auto recorded =
        testing::parse_json(read_file(entry.path().string())).at("algorithm");
    const Algorithm a = algorithm_from_json(testing::json_text(recorded));
    const std::string resolved = testing::json_text(recorded.at("resolved_config"));
    CHECK(a.config.to_json() == resolved);
    CHECK(a.config == ETraceConfig::from_json(resolved));
    CHECK(to_string(a.vjp_method) == recorded.at("vjp_method").get<std::string>());
    classes.insert(a.name);
    ++seen;
  }
  CHECK(seen >= 100);
  CHECK(classes.size() >= 10);
}

TEST_CASE("graphs of multi-step rules have no perturbed program") {
  const Algorithm multi = D_RTRL{.vjp_method = VjpMethod::multi_step};
  CHECK(graph_options(D_RTRL{}, {}).include_hidden_perturb);
  CHECK_FALSE(graph_options(multi, {}).include_hidden_perturb);
}

}  // namespace algorithm_test
