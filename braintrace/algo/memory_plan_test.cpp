// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/memory_plan.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/base/error.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/train/csv.h"

namespace memory_plan_test {

using namespace braintrace;
using nlohmann::json;

namespace {

struct Compiled {
  std::unique_ptr<Module> model;
  ETraceGraph graph;
};

Compiled compiled(const std::string& model, const Array& x, CompileOptions options = {}) {
  Compiled c{.model = nn::build_model(model)};
  InitOptions init;
  if (options.batched) init.batch_size = x.shape()[0];
  init_all_states(*c.model, init);
  c.graph = compile_etrace_graph(*c.model, {x}, options);
  return c;
}

const std::string gru =
    R"({"kind": "layer", "class": "GRUCell", "args": {"in_size": 3, "out_size": 4}})";
const std::string lif = R"({"kind": "lif_net", "n_in": 4, "n_rec": 5, "n_out": 2})";
const std::string rnn = R"({"kind": "single_rnn", "n_in": 3, "n_rec": 4, "n_out": 2})";
const std::string conv_leaky =
    R"({"kind": "conv_in_leaky", "dims": 2, "size": 4, "c_in": 1, "c_h": 2})";

const pp_prop smoothed{.decay_or_rank = 0.9};

const MemoryItem& item(const MemoryPlan& p, std::string_view kind, std::string_view owner,
                       std::string_view key = "") {
  for (const MemoryItem& i : p.items)
    if (i.kind == kind && i.owner == owner && i.key == key) return i;
  FAIL("no item " << std::string(kind) << " of " << std::string(owner));
  return p.items.front();
}

}  // namespace

TEST_CASE("D_RTRL of a GRU keeps two direct traces and the sensitivity of Wr") {
  const Compiled c = compiled(gru, zeros({3}));
  const MemoryPlan p = memory_plan(c.graph, D_RTRL{});
  CHECK(p.algorithm == "D_RTRL");
  CHECK(item(p, "bwg", "Wz/weight", "weight").shape == Shape{7, 4, 1});
  CHECK(item(p, "bwg", "Wz/weight", "weight").bytes == 112);
  CHECK(item(p, "bwg", "Wh/weight", "bias").shape == Shape{4, 1});
  CHECK(p.bytes_of("bwg") == 2 * (112 + 16));
  CHECK(item(p, "dense", "Wr/weight/weight").shape == Shape{4, 1, 7, 4});
  CHECK(p.bytes_of("dense") == 448 + 64);
  CHECK(p.total_bytes() == 768);
}

TEST_CASE("traces of a batch are per sample") {
  const Compiled c = compiled(gru, zeros({2, 3}), {.batched = true});
  const MemoryPlan p = memory_plan(c.graph, D_RTRL{});
  CHECK(item(p, "bwg", "Wz/weight", "weight").shape == Shape{2, 7, 4, 1});
  CHECK(item(p, "dense", "Wr/weight/weight").shape == Shape{2, 4, 1, 7, 4});
  CHECK(p.total_bytes() == 2 * 768);
}

TEST_CASE("pp_prop of a GRU keeps one factor per input and one per output") {
  const Compiled c = compiled(gru, zeros({3}));
  const MemoryPlan p = memory_plan(c.graph, smoothed);
  CHECK(p.bytes_of("x") == 2 * 7 * 4);
  CHECK(p.bytes_of("df") == 2 * 4 * 4);
  CHECK(p.bytes_of("dense") == 512);
  CHECK(p.total_bytes() == 600);
}

TEST_CASE("relations that read one value share its factor") {
  const Compiled c = compiled(
      R"({"kind": "layer", "class": "LSTMCell", "args": {"in_size": 3, "out_size": 4}})",
      zeros({3}));
  const MemoryPlan p = memory_plan(c.graph, smoothed);
  CHECK(c.graph.hidden_param_op_relations.size() == 4);
  CHECK(p.bytes_of("x") == 7 * 4);
  CHECK(p.bytes_of("df") == 4 * (4 * 2) * 4);
}

TEST_CASE("a spiking layer has two states per neuron") {
  const Compiled c = compiled(lif, zeros({4}));
  const MemoryPlan p = memory_plan(c.graph, D_RTRL{});
  CHECK(item(p, "bwg", "lin/weight", "weight").shape == Shape{9, 5, 2});
  CHECK(item(p, "bwg", "out/W", "weight").shape == Shape{5, 2, 1});
  CHECK(p.total_bytes() == (90 + 10 + 10) * 4);
  const MemoryPlan factors = memory_plan(c.graph, smoothed);
  CHECK(factors.total_bytes() == (9 + 10 + 5 + 2) * 4);
}

TEST_CASE("a convolution keeps a trace per output place") {
  const Compiled c = compiled(conv_leaky, zeros({3, 4, 4, 1}), {.batched = true});
  const MemoryPlan p = memory_plan(c.graph, D_RTRL{});
  // 3 samples, 16 places, a kernel of 18 weights
  CHECK(p.total_bytes() == 3 * 16 * 18 * 4);
  // image and output
  CHECK(memory_plan(c.graph, smoothed).total_bytes() == 3 * (16 + 32) * 4);
}

TEST_CASE("a kappa filter doubles the traces and bf16 halves them") {
  const Compiled c = compiled(lif, zeros({4}));
  const MemoryPlan p = memory_plan(c.graph, EProp{.kappa_filter_decay = 0.5});
  CHECK(p.bytes_of("kappa_filtered") == 440);
  CHECK(p.total_bytes() == 880);
  CHECK(memory_plan(c.graph, D_RTRL{.trace_dtype = DType::bf16}).total_bytes() == 220);
}

TEST_CASE("SnAp widens traces by its neighbours and wants a pattern") {
  const Compiled plain = compiled(rnn, zeros({3}));
  CHECK_THROWS_WITH_AS(memory_plan(plain.graph, SnAp{}),
                       "memory_plan: SnAp needs a graph compiled with sparse_n = 2",
                       UserError);
  const Compiled c =
      compiled(rnn, zeros({3}), {.include_recurrent_mixing = true, .sparse_n = 2});
  const MemoryPlan p = memory_plan(c.graph, SnAp{});
  CHECK(item(p, "bwg", "rnn/W/weight", "weight").shape == Shape{7, 4, 4});
  CHECK(p.total_bytes() == (28 + 4) * 4 * 4);
}

TEST_CASE("UORO keeps one copy of the states and one of the weights per sample") {
  CompileOptions options{.include_recurrent_mixing = true, .batched = true};
  const Compiled c = compiled(rnn, zeros({2, 3}), options);
  const MemoryPlan p = memory_plan(c.graph, UORO{});
  CHECK(p.bytes_of("s_tilde") == 2 * 4 * 4);
  CHECK(p.bytes_of("theta_tilde") == 2 * 32 * 4);
  CHECK(memory_plan(c.graph, UORO{}, {.shared_theta = true}).bytes_of("theta_tilde") ==
        32 * 4);
}

TEST_CASE("exact RTRL keeps weights times states, readouts left out") {
  const Compiled c = compiled(rnn, zeros({3}));
  CHECK(memory_plan(c.graph, ExactRTRL{}).total_bytes() == 32 * 4 * 4);
}

TEST_CASE("a window adds inputs and states of each step to multi-step rules alone") {
  const Compiled c = compiled(rnn, zeros({3}));
  const std::int64_t traces = 32 * 4, step = (7 + 4) * 4;
  CHECK(memory_plan(c.graph, D_RTRL{}, {.window = 10}).total_bytes() == traces);
  CHECK(memory_plan(c.graph, D_RTRL{.vjp_method = VjpMethod::multi_step}, {.window = 10})
            .total_bytes() == traces + 10 * step);
  CHECK(memory_plan(c.graph, BPTT{}, {.window = 10}).total_bytes() == 10 * step);
  CHECK_THROWS_WITH_AS(memory_plan(c.graph, BPTT{}),
                       "memory_plan: BPTT needs the window it keeps, got 0", UserError);
}

TEST_CASE("Hybrid takes the smaller storage of each relation") {
  // a: 4 decays, without data. w: 3 x 4 entries against factors of 3 and 4.
  const Compiled c =
      compiled(R"({"kind": "elemwise_decay", "n_in": 3, "n_rec": 4})", zeros({3}));
  for (const HiddenParamOpRelation& r : c.graph.hidden_param_op_relations)
    CHECK(stores_per_param(c.graph, r) == (to_slashes(r.path()) == "a"));
  const MemoryPlan p = memory_plan(c.graph, Hybrid{.decay_or_rank = 0.9});
  CHECK(p.bytes_of("bwg") == 4 * 4);
  CHECK(p.bytes_of("x") == 3 * 4);
  CHECK(p.bytes_of("df") == 4 * 4);
  // w: 1 x 4 entries against factors of 1 and 4.
  const Compiled narrow =
      compiled(R"({"kind": "elemwise_decay", "n_in": 1, "n_rec": 4})", zeros({1}));
  CHECK(memory_plan(narrow.graph, Hybrid{.decay_or_rank = 0.9}).bytes_of("bwg") ==
        (4 + 4) * 4);
}

TEST_CASE("inside a long loop only diagonal rules per weight can be planned") {
  const Compiled c = compiled(
      R"({"kind": "scan_leaky", "n_in": 3, "n_rec": 4, "loops": 20})", zeros({3}));
  CHECK(memory_plan(c.graph, D_RTRL{}).total_bytes() == 3 * 4 * 4);
  CHECK_THROWS_AS(memory_plan(c.graph, smoothed), UserError);
  CHECK_THROWS_AS(choose_algorithm(c.graph, 10), UserError);
}

TEST_CASE("the choice under a budget is the first rule that fits") {
  const Compiled c = compiled(lif, zeros({4}));
  CHECK(choose_algorithm(c.graph, 440).algorithm == Algorithm(D_RTRL{}));
  const AlgorithmChoice tight = choose_algorithm(c.graph, 439);
  CHECK(tight.algorithm.name == "Hybrid");
  CHECK(tight.plan.total_bytes() <= 439);
  CHECK(tight.considered.size() == 2);
  CHECK(tight.considered[0].total_bytes() == 440);
  CHECK_THROWS_WITH_AS(
      choose_algorithm(c.graph, 100),
      "choose_algorithm: no rule fits into 100 B; the smallest, Hybrid, takes 104 B",
      UserError);
}

TEST_CASE("planned shapes are those of every recorded trace") {
  std::size_t rows = 0, cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens")) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = read_file(entry.path().string());
    const json j = testing::parse_json(text);
    INFO(entry.path().filename().string());
    // Ours are traces of the product, the reference's of its factors.
    if (testing::json_text(j["expected"]["etrace_final"]).find("lora_a") !=
        std::string::npos)
      continue;
    const Algorithm a = algorithm_from_json(testing::json_text(j["algorithm"]));
    CompileOptions options = compat();
    options.include_recurrent_mixing =
        a.config.recurrence_scope() != RecurrenceScope::diagonal;
    options.sparse_n = a.config.sparse_n();
    options.batched = j["mode"] == "batch";
    Shape in = j["inputs"]["shape"].get<Shape>();
    in.erase(in.begin());
    if (j["mode"] == "vmap") in.erase(in.begin());
    const bool integers = j["inputs"].value("dtype", "") == "int32";
    const Compiled c =
        compiled(text, zeros(in, integers ? DType::i32 : DType::f32), options);
    using Row = std::tuple<std::string, std::int64_t, std::string, Shape>;
    std::set<Row> planned, recorded;
    for (const MemoryItem& i : memory_plan(c.graph, a, {.shared_theta = true}).items)
      planned.emplace(i.kind, i.group, i.key, i.shape);
    for (const json& row : j["expected"]["etrace_final"]) {
      const std::string kind = row["kind"];
      const bool keyed = kind == "bwg" || kind == "kappa_filtered";
      // Arrays of a parameter that no op has: kept there, always zero.
      const auto& data = row["data"];
      const bool zero =
          std::all_of(data.begin(), data.end(), [](const json& v) { return v == 0.0; });
      if (kind == "theta_tilde" && zero) continue;
      Shape shape = row["shape"].get<Shape>();
      if (j["mode"] == "vmap") shape.erase(shape.begin());
      recorded.emplace(kind, row["group"], keyed ? row["key"] : "", shape);
      ++rows;
    }
    CHECK(planned == recorded);
    ++cases;
  }
  CHECK(cases >= 95);
  CHECK(rows >= 200);
}

}  // namespace memory_plan_test
