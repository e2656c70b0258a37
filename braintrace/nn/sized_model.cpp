// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/sized_model.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/base/error.h"

namespace braintrace::nn {
namespace {

using nlohmann::json;

struct Cell {
  const char* name;
  const char* layer;  // class in a `sequential` model
};
constexpr Cell cells[] = {{"gru", "GRUCell"},
                          {"rnn", "VanillaRNNCell"},
                          {"lstm", "LSTMCell"},
                          {"mgu", "MGUCell"}};

struct SpikingNet {
  const char* name;
  const char *kind, *of_layers;
};
constexpr SpikingNet spiking_nets[] = {{"lif", "lif_net", "lif_stack"},
                                       {"alif", "alif_net", "alif_stack"}};

json layer(const std::string& name, const char* kind, std::int64_t in, std::int64_t out) {
  return {
      {"name", name}, {"class", kind}, {"args", {{"in_size", in}, {"out_size", out}}}};
}

json stack(const char* cell, const ModelSizes& s) {
  json layers = json::array();
  for (std::int64_t i = 0; i < s.layers; ++i)
    layers.push_back(layer(s.layers == 1 ? "rnn" : fmt::format("rnn{}", i + 1), cell,
                           i == 0 ? s.n_in : s.n_rec, s.n_rec));
  layers.push_back(layer("out", "Linear", s.n_rec, s.n_out));
  return {{"kind", "sequential"}, {"layers", layers}};
}

}  // namespace

std::string sized_model(std::string_view name, const ModelSizes& s) {
  BT_REQUIRE(s.n_in > 0 && s.n_rec > 0 && s.n_out > 0 && s.layers > 0,
             fmt::format("sized_model: sizes must be positive, got {}, {}, {} and {} "
                         "layers",
                         s.n_in, s.n_rec, s.n_out, s.layers));
  for (const Cell& c : cells)
    if (c.name == name) return stack(c.layer, s).dump();
  BT_REQUIRE(name != "conv_rnn",
             fmt::format("sized_model: 'conv_rnn' takes images (1, size, size), not "
                         "vectors of n_in = {} numbers",
                         s.n_in));
  json model = {{"n_in", s.n_in}, {"n_rec", s.n_rec}, {"n_out", s.n_out}};
  for (const SpikingNet& n : spiking_nets) {
    if (n.name != name) continue;
    if (s.layers > 1) model["layers"] = s.layers;
    model.update({{"kind", s.layers > 1 ? n.of_layers : n.kind},
                  {"tau_mem", 20},
                  {"tau_syn", 10},
                  {"tau_out", 10},
                  {"V_th", 0.3}});
    return model.dump();
  }
  BT_REQUIRE(s.layers == 1,
             fmt::format("sized_model: '{}' has one layer, got {}", name, s.layers));
  model["kind"] = name;
  return model.dump();
}

std::vector<std::string> sized_model_names() {
  std::vector<std::string> names;
  for (const Cell& c : cells) names.emplace_back(c.name);
  for (const SpikingNet& n : spiking_nets) names.emplace_back(n.name);
  return names;
}

}  // namespace braintrace::nn
