// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/model_registry.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "braintrace/model/step_model.h"

namespace braintrace::nn::model_registry_test {
namespace {

std::vector<std::string> paths(const std::string& text) {
  const auto m = build_model(text);
  init_all_states(*m);
  std::vector<std::string> out;
  for (const auto& [path, unused] : state_dict(*m)) out.push_back(path);
  return out;
}

Shape output_shape(const std::string& text, const Shape& x) {
  const auto m = build_model(text);
  init_all_states(*m);
  return m->update(zeros(x)).shape();
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("the tutorial models have the sizes of the tutorial") {
  CHECK(output_shape("single_rnn", {10}) == Shape{5});
  CHECK(output_shape("two_layer_gru", {10}) == Shape{5});
  CHECK(output_shape("conv_rnn", {1, 28, 28}) == Shape{10});
  const auto m = build_model("conv_rnn");
  init_all_states(*m);
  CHECK(state_dict(*m).at("rnn/W/weight/weight").shape() == Shape{8 * 28 * 28 + 64, 64});
}

TEST_CASE("a kind takes options from a JSON object") {
  CHECK(output_shape(R"({"kind": "single_rnn", "n_in": 3, "n_out": 2})", {3}) ==
        Shape{2});
}

TEST_CASE("the two states of a chain are read in the order of its equations") {
  const auto m = build_model(R"({"kind": "two_state_chain", "n_in": 2, "n_rec": 3})");
  init_all_states(*m);
  std::vector<std::string> read;
  for (const StepState& s : trace_step(*m, {zeros({2})}).states)
    read.push_back(to_slashes(s.path));
  const auto at = [&](const char* path) { return std::ranges::find(read, path); };
  CHECK(at("V") < at("a"));
}

TEST_CASE("states stand at the paths of the layers") {
  CHECK(
      paths(R"({"kind": "lif_net", "n_in": 2, "n_rec": 3, "n_out": 1})") ==
      Paths{"lin/weight/bias", "lin/weight/weight", "neu/V", "out/W", "out/r", "syn/g"});
  CHECK(paths(R"({"kind": "lif_net", "n_in": 2, "n_rec": 3, "n_out": 1,
                  "wiring": "alignpost"})") ==
        Paths{"neu/V", "neu/_before_updates/AlignPost[Expon,CUBA]/syn/g", "out/W",
              "out/r", "syn/comm/weight/bias", "syn/comm/weight/weight"});
  CHECK(paths(R"({"kind": "layer", "class": "GRUCell",
                  "args": {"in_size": 2, "out_size": 3}})")
            .front() == "Wh/weight/bias");
}

TEST_CASE("the names of the weights settle whether a layer has a bias") {
  const std::string model = R"("model": {"kind": "conv_in_leaky", "dims": 1, "size": 4,
                                         "c_in": 1, "c_h": 2})";
  CHECK(paths("{" + model + R"(, "weights": {"ci/weight/weight": 0}})") ==
        Paths{"ci/weight/weight", "h"});
  CHECK(paths("{" + model +
              R"(, "weights": {"ci/weight/weight": 0, "ci/weight/bias": 0}})") ==
        Paths{"ci/weight/bias", "ci/weight/weight", "h"});
}

TEST_CASE("a layer takes the reference's arguments") {
  const auto layer = [](const std::string& cls, const std::string& args) {
    return R"({"kind": "layer", "class": ")" + cls + R"(", "args": {)" + args + "}}";
  };
  CHECK(output_shape(layer("GRUCell", R"("in_size": [2], "out_size": [3])"), {2}) ==
        Shape{3});
  CHECK(paths(layer("Linear", R"("in_size": 2, "out_size": 3, "b_init": null)")) ==
        Paths{"weight/weight"});
  CHECK(output_shape(layer("Linear", R"("in_size": [5, 2], "out_size": [5, 3])"),
                     {5, 2}) == Shape{5, 3});
  CHECK(paths(layer("ValinaRNNCell", R"("in_size": 2, "out_size": 3, "b_init": null)")) ==
        Paths{"W/weight/weight", "h"});
  CHECK(output_shape(layer("LRUCell", R"("d_model": 2, "d_hidden": 3, "r_min": 0.4,
                                         "r_max": 0.9, "max_phase": 3.14)"),
                     {2}) == Shape{2});
  CHECK(output_shape(layer("GRUCell", R"("in_size": 2, "out_size": 3, "activation": null,
                                         "name": "cell")"),
                     {2}) == Shape{3});
}

TEST_CASE("a convolution takes every form of padding and both dilations") {
  const auto shape = [](const std::string& args) {
    return output_shape(R"({"kind": "layer", "class": "Conv2d", "args":
      {"in_size": [6, 6, 1], "out_channels": 2, "kernel_size": 3, )" +
                            args + "}}",
                        {6, 6, 1});
  };
  CHECK(shape(R"("padding": 0)") == Shape{4, 4, 2});
  CHECK(shape(R"("padding": 1)") == Shape{6, 6, 2});
  CHECK(shape(R"("padding": [0, 1])") == Shape{4, 6, 2});
  CHECK(shape(R"("padding": [[0, 1], [1, 1]])") == Shape{5, 6, 2});
  CHECK(shape(R"("padding": "VALID", "lhs_dilation": 2)") == Shape{9, 9, 2});
  CHECK(shape(R"("padding": "VALID", "rhs_dilation": [2, 1])") == Shape{2, 4, 2});
  CHECK(shape(R"("padding": null, "b_init": null)") == Shape{6, 6, 2});
  for (const char* bad : {R"("padding": -1)", R"("padding": [])", R"("padding": [[1]])",
                          R"("padding": [1, 1, 1])", R"("padding": 1.5)"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(shape(bad), UserError);
  }
}

TEST_CASE("a stack may hold every layer there is") {
  const std::string text = R"({"kind": "sequential", "in_shape": [8, 8, 2], "layers": [
    {"name": "conv", "class": "Conv2d",
     "args": {"in_size": [8, 8, 2], "out_channels": 4, "kernel_size": 3}},
    {"name": "norm", "class": "LayerNorm", "args": {"in_size": [8, 8, 4]}},
    {"name": "act", "class": "ReLU"},
    {"name": "pool", "class": "MaxPool2d", "args": {"kernel_size": 2}},
    {"name": "mean", "class": "AdaptiveAvgPool2d", "args": {"target_size": [2, 1]}},
    {"name": "batch", "class": "BatchNorm2d", "args": {"in_size": [2, 1, 4]}},
    {"name": "flat", "class": "Flatten"},
    {"name": "drop", "class": "Dropout", "args": {"prob": 0.9}},
    {"name": "rms", "class": "RMSNorm", "args": {"in_size": 8}},
    {"name": "group", "class": "GroupNorm", "args": {"in_size": 8, "num_groups": 2}},
    {"name": "signed", "class": "SignedWLinear", "args": {"in_size": 8, "out_size": 6}},
    {"name": "soft", "class": "Hardtanh", "args": {"max_val": 2}},
    {"name": "scaled", "class": "ScaledWSLinear", "args": {"in_size": 6, "out_size": 6}},
    {"name": "low", "class": "LoRA",
     "args": {"in_features": 6, "lora_rank": 2, "out_features": 4}},
    {"name": "tanh", "class": "tanh"},
    {"name": "cut", "class": "Unflatten", "args": {"sizes": [2, 2]}},
    {"name": "groups", "class": "GroupedLinear",
     "args": {"num_groups": 2, "in_features": 2, "out_features": 3}},
    {"name": "flat2", "class": "flatten"},
    {"name": "out", "class": "LeakySpikeReadout",
     "args": {"in_size": 6, "out_size": 2, "tau_ms": 10.0}}]})";
  CHECK(output_shape(text, {8, 8, 2}) == Shape{2});
}

TEST_CASE("the input of a stack may be one index") {
  const std::string text = R"({"kind": "sequential", "in_shape": [], "layers": [
    {"name": "emb", "class": "Embedding",
     "args": {"num_embeddings": 5, "embedding_size": 3}},
    {"name": "flat", "class": "flatten"},
    {"name": "act", "class": "GELU", "args": {"approximate": true}}]})";
  CHECK(paths(text).size() == 1);
}

TEST_CASE("a layer finds its arrays in its arguments or in the model's constants") {
  const std::string mask = R"({"shape": [2, 3], "data": [1, 0, 1, 0, 1, 0]})";
  CHECK(
      paths(R"({"kind": "sequential", "layers": [{"name": "a", "class": "SparseLinear"}],
                  "constants": {"csr_dense_mask": )" +
            mask + "}}") == Paths{"a/weight/weight"});
  const auto m = build_model(
      R"({"kind": "sequential", "layers": [{"name": "a", "class": "Linear",
          "args": {"in_size": 2, "out_size": 3}}], "constants": {"a/w_mask": )" +
      mask + "}}");
  init_all_states(*m);
  const Array y = m->update(ones({2})).array();
  const Array w = state_dict(*m).at("a/weight/weight");
  CHECK(y.at(0) == w.at(0));
  CHECK(y.at(1) == w.at(4));
}

TEST_CASE("every kind is known once and builds or names what it needs") {
  const auto kinds = model_kinds();
  CHECK(std::adjacent_find(kinds.begin(), kinds.end()) == kinds.end());
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    try {
      build_model(kind);
    } catch (const UserError& e) {
      CHECK(std::string(e.what()).starts_with("model '" + kind + "'"));
    }
  }
}

TEST_CASE("unknown kinds, options, layers and wirings are refused with what is known") {
  CHECK_THROWS_WITH_AS(
      build_model("lstm"),
      doctest::Contains("unknown kind 'lstm'; known: alif_net, alif_stack, branching"),
      UserError);
  CHECK_THROWS_WITH_AS(
      build_model(R"({"kind": "tied", "n_rec": 2, "leek": 1})"),
      "model 'tied': unknown option 'leek'; known: constants, dt_ms, kind, n_rec",
      UserError);
  CHECK_THROWS_WITH_AS(build_model(R"({"kind": "tied", "n_rec": -2})"),
                       "model 'tied': 'n_rec' must be a positive whole number, got -2",
                       UserError);
  CHECK_THROWS_WITH_AS(
      build_model(R"({"kind": "tied"})"),
      "model 'tied': 'n_rec' must be a positive whole number, got nothing", UserError);
  CHECK_THROWS_WITH_AS(
      build_model(R"({"kind": "sequential", "layers": [{"name": "a", "class": "RNN"}]})"),
      doctest::Contains("unknown layer class 'RNN'; known: CFNCell"), UserError);
  CHECK_THROWS_WITH_AS(build_model(R"({"kind": "lif_net", "n_in": 1, "n_rec": 1,
                                       "n_out": 1, "wiring": "gamma"})"),
                       doctest::Contains("'wiring' must be expcu, delta or alignpost"),
                       UserError);
  CHECK_THROWS_WITH_AS(
      build_model(R"({"kind": "linear_rnn", "layer": "Dense", "n_in": 1, "n_rec": 1})"),
      doctest::Contains("unknown layer 'Dense'"), UserError);
}

TEST_CASE("malformed model texts are refused") {
  const char* texts[] = {
      "",
      "{",
      "[1]",
      "{}",
      R"({"kind": 3})",
      R"({"model": 3})",
      R"({"model": {}})",
      R"({"kind": "sequential"})",
      R"({"kind": "sequential", "layers": []})",
      R"({"kind": "sequential", "layers": [3]})",
      R"({"kind": "sequential", "layers": [{"name": "a"}]})",
      R"({"kind": "sequential", "layers": [{"name": "a", "class": "Linear", "args": []}]})",
      R"({"kind": "layer", "class": "Linear", "args": {"in_size": 1, "out_size": 1, "b_init": "one"}})",
      R"({"kind": "layer", "class": "Linear", "args": {"in_size": 1, "out_size": 1, "speed": null}})",
      R"({"kind": "layer", "class": "GRUCell", "args": {"in_size": [1, 2], "out_size": 1}})",
      R"({"kind": "layer", "class": "BatchNorm0d", "args": {"in_size": 1, "feature_axis": 1}})",
      R"({"kind": "sparse_ring", "n_in": 1, "n_rec": 2})",
      R"({"kind": "sparse_ring", "n_in": 1, "n_rec": 2, "constants": {"csr_dense_mask": 1}})",
      R"({"kind": "tied", "n_rec": 99999999999})",
      R"({"kind": "tied", "n_rec": 18446744073709551615})",
      R"({"kind": "tied", "n_rec": 1, "dt_ms": "one"})",
      R"({"kind": "lif_net", "n_in": 1, "n_rec": 1, "n_out": 1, "tau_mem": 0})",
      R"({"kind": "conv_rec", "dims": 5, "size": 2, "c_in": 1, "c_h": 1})"};
  for (const char* text : texts) {
    CAPTURE(text);
    CHECK_THROWS_AS(build_model(text), UserError);
  }
}

}  // namespace braintrace::nn::model_registry_test
