// SPDX-License-Identifier: Apache-2.0
// Finds the class of a layer and builds it; recurrent cells and readouts.
#include <algorithm>

#include <fmt/core.h>

#include "braintrace/array/array_json.h"
#include "braintrace/nn/activation_layers.h"
#include "braintrace/nn/cfn.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/lru.h"
#include "braintrace/nn/lstm.h"
#include "braintrace/nn/mgu.h"
#include "braintrace/nn/mini_gru.h"
#include "braintrace/nn/mini_lstm.h"
#include "braintrace/nn/minimal_rnn.h"
#include "braintrace/nn/model_layers_impl.h"
#include "braintrace/nn/readout.h"
#include "braintrace/nn/urlstm.h"
#include "braintrace/nn/vanilla_rnn.h"

namespace braintrace::nn::internal {

std::string LayerSpec::path(const std::string& leaf) const {
  return name.empty() ? leaf : name + "/" + leaf;
}

bool LayerSpec::has_weight(const std::string& leaf, bool otherwise) const {
  return model.has_weight(path(leaf), otherwise);
}

Initializer LayerSpec::bias(bool otherwise) {
  const bool none = args.is_null("b_init");
  const nlohmann::json* given = args.find("b_init");
  if (given && !given->is_number()) args.refuse("b_init", "null or a number");
  bool wanted = !none && (otherwise || given);
  if (model.weights)
    wanted = std::any_of(
        model.weights->begin(), model.weights->end(), [&](const std::string& p) {
          return p.starts_with(path("")) && ("/" + p).ends_with("/weight/bias");
        });
  if (!wanted) return {};
  return given ? init::constant(given->get<double>()) : init::zero();
}

std::optional<Array> LayerSpec::array(const std::string& option) {
  const nlohmann::json* given = args.find(option);
  if (!given) return model.find_constant(path(option));
  if (given->is_string()) return model.constant(given->get<std::string>());
  if (given->is_number()) return scalar(given->get<double>(), DType::f64);
  return array_from_json(args.where() + ": " + option, *given).astype(DType::f64);
}

namespace {

template <class Options>
Options cell_options(LayerSpec& l) {
  Options options;
  if constexpr (requires { options.b_init; }) options.b_init = l.bias();
  if constexpr (requires { options.activation; })
    if (l.args.find("activation")) options.activation = l.args.text("activation", "");
  return options;
}

template <class Cell, class Options>
std::unique_ptr<Module> make_cell(LayerSpec& l) {
  return std::make_unique<Cell>(l.args.size("in_size"), l.args.size("out_size"),
                                cell_options<Options>(l));
}

std::unique_ptr<Module> make_lru(LayerSpec& l) {
  const LRUCellOptions usual;
  return std::make_unique<LRUCell>(
      l.args.size("d_model"), l.args.size("d_hidden"),
      LRUCellOptions{.r_min = l.args.number("r_min", usual.r_min),
                     .r_max = l.args.number("r_max", usual.r_max),
                     .max_phase = l.args.number("max_phase", usual.max_phase)});
}

Coefficient readout_tau(LayerSpec& l) {
  return scalar(l.args.number("tau_ms", l.args.number("tau", 5)), DType::f64);
}

std::unique_ptr<Module> make_rate_readout(LayerSpec& l) {
  return std::make_unique<LeakyRateReadout>(
      l.args.size("in_size"), l.args.size("out_size"),
      LeakyRateReadoutOptions{.tau = readout_tau(l), .dt = l.model.dt});
}

std::unique_ptr<Module> make_spike_readout(LayerSpec& l) {
  return std::make_unique<LeakySpikeReadout>(
      l.args.size("in_size"), l.args.size("out_size"),
      LeakySpikeReadoutOptions{.tau = readout_tau(l),
                               .V_th = scalar(l.args.number("V_th", 1), DType::f64),
                               .dt = l.model.dt,
                               .spk_reset = l.args.text("spk_reset", "soft")});
}

}  // namespace

std::vector<LayerKind> cell_layers() {
  return {
      {"CFNCell", make_cell<CFNCell, GatedCellOptions>},
      {"GRUCell", make_cell<GRUCell, GatedCellOptions>},
      {"LRUCell", make_lru},
      {"LSTMCell", make_cell<LSTMCell, LSTMCellOptions>},
      {"LeakyRateReadout", make_rate_readout},
      {"LeakySpikeReadout", make_spike_readout},
      {"MGUCell", make_cell<MGUCell, GatedCellOptions>},
      {"MiniGRU", make_cell<MiniGRU, MinimalCellOptions>},
      {"MiniLSTM", make_cell<MiniLSTM, MinimalCellOptions>},
      {"MinimalRNNCell", make_cell<MinimalRNNCell, MinimalRNNCellOptions>},
      {"URLSTMCell", make_cell<URLSTMCell, URLSTMCellOptions>},
      {"ValinaRNNCell", make_cell<VanillaRNNCell, VanillaRNNCellOptions>},
      {"VanillaRNNCell", make_cell<VanillaRNNCell, VanillaRNNCellOptions>},
  };
}

std::unique_ptr<Module> make_layer(const std::string& cls, LayerSpec& layer) {
  layer.args.ignore({"name"});  // a label of the reference
  std::string known;
  for (const auto& part :
       {cell_layers(), weight_layers(), shape_layers(), activation_layers()})
    for (const LayerKind& k : part) {
      known += known.empty() ? k.name : std::string(", ") + k.name;
      if (cls != k.name) continue;
      std::unique_ptr<Module> m = k.make(layer);
      layer.args.finish();
      return m;
    }
  const std::vector<std::string> functions = activation_names();
  BT_REQUIRE(std::find(functions.begin(), functions.end(), cls) != functions.end(),
             fmt::format("{}: unknown layer class '{}'; known: {}, and activations by "
                         "name",
                         layer.model.where(), cls, known));
  layer.args.finish();
  return std::make_unique<Apply>(cls);
}

}  // namespace braintrace::nn::internal
