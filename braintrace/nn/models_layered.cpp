// SPDX-License-Identifier: Apache-2.0
// Models stacked from layers: `sequential`, `linear_rnn` and the named tutorial models.
#include <fmt/core.h>

#include "braintrace/nn/cfn.h"
#include "braintrace/nn/conv.h"
#include "braintrace/nn/embedding.h"
#include "braintrace/nn/grouped_linear.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/lora.h"
#include "braintrace/nn/lru.h"
#include "braintrace/nn/lstm.h"
#include "braintrace/nn/mgu.h"
#include "braintrace/nn/mini_gru.h"
#include "braintrace/nn/mini_lstm.h"
#include "braintrace/nn/minimal_rnn.h"
#include "braintrace/nn/model_spec_impl.h"
#include "braintrace/nn/readout.h"
#include "braintrace/nn/scaled_linear.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/nn/sparse_linear.h"
#include "braintrace/nn/urlstm.h"
#include "braintrace/nn/vanilla_rnn.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

// Row-major reshape of the last `rank` axes to one.
struct FlattenLast : Module {
  std::int64_t rank;
  explicit FlattenLast(std::int64_t r) : rank(r) {}
  Value update(Value x) override {
    BT_REQUIRE(x.rank() >= rank,
               fmt::format("flatten: x must have at least {} axes, got {}", rank,
                           to_string(x.shape())));
    const Shape in = x.shape();
    Shape out(in.begin(), in.end() - rank);
    out.push_back(-1);
    return reshape(x, out);
  }
};

struct Stack : Module {
  std::vector<std::unique_ptr<Module>> layers;
  void push(const std::string& name, std::unique_ptr<Module> layer) {
    add(name, *layer);
    layers.push_back(std::move(layer));
  }
  Value update(Value x) override {
    for (const auto& layer : layers) x = (*layer)(x);
    return x;
  }
};

// One entry of `layers`; `rank` is the number of axes of one sample, updated.
struct LayerSpec {
  std::string name;
  ModelSpec args;
  std::int64_t rank;
};
using LayerMaker = std::unique_ptr<Module> (*)(LayerSpec&);

template <class Cell>
std::unique_ptr<Module> sized(LayerSpec& l) {
  return std::make_unique<Cell>(l.args.size("in_size"), l.args.size("out_size"));
}

template <class Cell, class Options>
std::unique_ptr<Module> activated(LayerSpec& l) {
  Options options;
  if (l.args.find("activation")) options.activation = l.args.text("activation", "");
  return std::make_unique<Cell>(l.args.size("in_size"), l.args.size("out_size"), options);
}

std::unique_ptr<Module> linear(LayerSpec& l) {
  const bool bias = l.args.has_weight(l.name + "/weight/bias", true);
  return std::make_unique<Linear>(
      l.args.size("in_size"), l.args.size("out_size"),
      LinearOptions{.b_init = bias ? init::zero() : Initializer{}});
}

std::unique_ptr<Module> lru(LayerSpec& l) {
  return std::make_unique<LRUCell>(l.args.size("d_model"), l.args.size("d_hidden"));
}

std::unique_ptr<Module> leaky_readout(LayerSpec& l) {
  const double tau = l.args.number("tau_ms", 5);
  return std::make_unique<LeakyRateReadout>(
      l.args.size("in_size"), l.args.size("out_size"),
      LeakyRateReadoutOptions{.tau = scalar(tau, DType::f64), .dt = l.args.dt});
}

std::unique_ptr<Module> embedding(LayerSpec& l) {
  l.rank = 1;
  return std::make_unique<Embedding>(l.args.size("num_embeddings"),
                                     l.args.size("embedding_size"));
}

std::unique_ptr<Module> flatten(LayerSpec& l) {
  const std::int64_t rank = l.rank;
  l.rank = 1;
  return std::make_unique<FlattenLast>(rank);
}

PerAxis per_axis(ModelSpec& args, const char* name) {
  return args.find(name) ? PerAxis(args.sizes(name)) : PerAxis(1);
}

template <int N>
std::unique_ptr<Module> convolution(LayerSpec& l) {
  ModelSpec& a = l.args;
  const bool bias = a.has_weight(l.name + "/weight/bias", a.flag("bias", false));
  ConvOptions options{.kernel_size = per_axis(a, "kernel_size"),
                      .stride = per_axis(a, "stride"),
                      .padding = a.text("padding", "SAME"),
                      .rhs_dilation = per_axis(a, "rhs_dilation"),
                      .groups = a.size("groups", 1),
                      .b_init = bias ? init::zero() : Initializer{},
                      .channel_first = a.flag("channel_first", false)};
  l.rank = N + 1;
  const Ints in = a.sizes("in_size");
  if (in.size() == 1)
    return std::make_unique<Conv<N>>(in[0], a.size("out_channels"), options);
  return std::make_unique<Conv<N>>(in, a.size("out_channels"), options);
}

struct LayerKind {
  const char* name;
  LayerMaker make;
};
constexpr LayerKind layer_kinds[] = {
    {"CFNCell", activated<CFNCell, GatedCellOptions>},
    {"Conv1d", convolution<1>},
    {"Conv2d", convolution<2>},
    {"Conv3d", convolution<3>},
    {"Embedding", embedding},
    {"GRUCell", activated<GRUCell, GatedCellOptions>},
    {"LRUCell", lru},
    {"LSTMCell", activated<LSTMCell, LSTMCellOptions>},
    {"LeakyRateReadout", leaky_readout},
    {"Linear", linear},
    {"MGUCell", activated<MGUCell, GatedCellOptions>},
    {"MiniGRU", sized<MiniGRU>},
    {"MiniLSTM", sized<MiniLSTM>},
    {"MinimalRNNCell", sized<MinimalRNNCell>},
    {"URLSTMCell", activated<URLSTMCell, URLSTMCellOptions>},
    {"ValinaRNNCell", activated<VanillaRNNCell, VanillaRNNCellOptions>},
    {"VanillaRNNCell", activated<VanillaRNNCell, VanillaRNNCellOptions>},
    {"flatten", flatten},
};

std::unique_ptr<Module> make_layer(const std::string& where, const std::string& cls,
                                   LayerSpec& layer) {
  std::string known;
  for (const LayerKind& k : layer_kinds) {
    if (cls == k.name) return k.make(layer);
    known += known.empty() ? k.name : std::string(", ") + k.name;
  }
  throw UserError(
      fmt::format("{}: unknown layer class '{}'; known: {}", where, cls, known));
}

std::unique_ptr<Module> sequential(ModelSpec& s) {
  const nlohmann::json* layers = s.find("layers");
  BT_REQUIRE(layers && layers->is_array() && !layers->empty(),
             s.where() + ": 'layers' must be a list with at least one layer");
  auto stack = std::make_unique<Stack>();
  std::int64_t rank = 1;
  if (s.find("in_shape")) rank = static_cast<std::int64_t>(s.sizes("in_shape").size());
  for (const nlohmann::json& entry : *layers) {
    ModelSpec fields(s.where() + ": layer", entry);
    const std::string name = fields.text("name", ""), cls = fields.text("class", "");
    BT_REQUIRE(!name.empty() && !cls.empty(),
               s.where() + ": a layer needs a 'name' and a 'class'");
    const nlohmann::json* args = fields.find("args");
    fields.finish();
    LayerSpec layer{name,
                    ModelSpec(fmt::format("{}: layer '{}' ({})", s.where(), name, cls),
                              args ? *args : nlohmann::json::object()),
                    rank};
    layer.args.weights = s.weights;
    layer.args.dt = s.dt;
    stack->push(name, make_layer(s.where(), cls, layer));
    layer.args.finish();
    rank = layer.rank;
  }
  return stack;
}

// One layer alone: {"kind": "layer", "class": "GRUCell", "args": {...}}.
std::unique_ptr<Module> single_layer(ModelSpec& s) {
  const std::string cls = s.text("class", "");
  const nlohmann::json* args = s.find("args");
  LayerSpec layer{
      "", ModelSpec(s.where() + ": args", args ? *args : nlohmann::json::object()), 1};
  layer.args.dt = s.dt;
  std::unique_ptr<Module> m = make_layer(s.where(), cls, layer);
  layer.args.finish();
  return m;
}

// ---- linear_rnn -----------------------------------------------------------------------

std::unique_ptr<Module> recurrent_layer(ModelSpec& s, std::int64_t in, std::int64_t out) {
  const std::string layer = s.text("layer", "Linear");
  const std::int64_t rank = s.size("rank", 2);
  if (layer == "Linear") return std::make_unique<Linear>(in, out);
  if (layer == "Linear_masked")
    return std::make_unique<Linear>(in, out, LinearOptions{.w_mask = s.constant("mask")});
  if (layer == "SignedWLinear")
    return std::make_unique<SignedWLinear>(
        in, out, SignedWLinearOptions{.w_sign = s.constant("sign")});
  if (layer == "SignedWLinear_nosign") return std::make_unique<SignedWLinear>(in, out);
  if (layer == "ScaledWSLinear") return std::make_unique<ScaledWSLinear>(in, out);
  if (layer == "ScaledWSLinear_nogain")
    return std::make_unique<ScaledWSLinear>(in, out,
                                            ScaledWSLinearOptions{.ws_gain = false});
  if (layer == "SparseLinear") {
    const bool bias = s.has_weight("rec/weight/bias", true);
    return std::make_unique<SparseLinear>(
        dense_structure(s.constant("csr_dense_mask")),
        SparseLinearOptions{.b_init = bias ? init::zero() : Initializer{}});
  }
  if (layer == "LoRA") return std::make_unique<LoRA>(in, rank, out);
  if (layer == "LoRA_base")
    return std::make_unique<LoRA>(
        in, rank, out, LoRAOptions{.base_module = std::make_shared<Linear>(in, out)});
  throw UserError(fmt::format(
      "{}: unknown layer '{}'; known: Linear, Linear_masked, SignedWLinear, "
      "SignedWLinear_nosign, ScaledWSLinear, ScaledWSLinear_nogain, SparseLinear, LoRA, "
      "LoRA_base, GroupedLinear",
      s.where(), layer));
}

// h' = leak h + tanh(rec([x, h]));  y = out(h'), or h' itself when rec is grouped
struct LinearRnn : Module {
  double leak;
  std::unique_ptr<Module> rec, out;
  std::unique_ptr<HiddenState> h;

  explicit LinearRnn(ModelSpec& s) : leak(s.number("leak", 0)) {
    const std::int64_t n_in = s.size("n_in"), n_rec = s.size("n_rec");
    s.ignore({"mask_seed", "seed", "density"});
    if (s.text("layer", "Linear") == "GroupedLinear") {
      const std::int64_t groups = s.size("groups", 2);
      s.ignore({"n_out"});
      rec = std::make_unique<GroupedLinear>(groups, n_in + n_rec, n_rec);
      h = std::make_unique<HiddenState>(Shape{groups, n_rec});
    } else {
      rec = recurrent_layer(s, n_in + n_rec, n_rec);
      h = std::make_unique<HiddenState>(Shape{n_rec});
      out = std::make_unique<Linear>(n_rec, s.size("n_out"));
      add("out", *out);
    }
    add("rec", *rec);
    add("h", *h);
  }

  Value update(Value x) override {
    const Value q = tanh((*rec)(concat({x, h->value()})));
    h->set(leak == 0 ? q : leak * h->value() + q);
    return out ? (*out)(h->value()) : h->value();
  }
};

std::unique_ptr<Module> linear_rnn(ModelSpec& s) {
  return std::make_unique<LinearRnn>(s);
}

// ---- tutorial models ------------------------------------------------------------------

std::unique_ptr<Module> single_rnn(ModelSpec& s) {
  const std::int64_t n_rec = s.size("n_rec", 32);
  auto m = std::make_unique<Stack>();
  m->push("rnn", std::make_unique<VanillaRNNCell>(s.size("n_in", 10), n_rec));
  m->push("out", std::make_unique<Linear>(n_rec, s.size("n_out", 5)));
  return m;
}

std::unique_ptr<Module> two_layer_gru(ModelSpec& s) {
  const std::int64_t n_rec = s.size("n_rec", 32);
  auto m = std::make_unique<Stack>();
  m->push("rnn1", std::make_unique<GRUCell>(s.size("n_in", 10), n_rec));
  m->push("rnn2", std::make_unique<GRUCell>(n_rec, n_rec));
  m->push("out", std::make_unique<Linear>(n_rec, s.size("n_out", 5)));
  return m;
}

// x (1, size, size)
std::unique_ptr<Module> conv_rnn(ModelSpec& s) {
  const std::int64_t n_rec = s.size("n_rec", 64), channels = s.size("channels", 8),
                     size = s.size("size", 28);
  auto m = std::make_unique<Stack>();
  m->push("conv", std::make_unique<Conv2d>(1, channels, ConvOptions{.kernel_size = 3}));
  m->push("flat", std::make_unique<FlattenLast>(3));
  m->push("rnn", std::make_unique<VanillaRNNCell>(channels * size * size, n_rec));
  m->push("out", std::make_unique<Linear>(n_rec, s.size("n_out", 10)));
  return m;
}

}  // namespace

std::vector<ModelKind> layered_kinds() {
  return {{"sequential", sequential},       {"layer", single_layer},
          {"linear_rnn", linear_rnn},       {"single_rnn", single_rnn},
          {"two_layer_gru", two_layer_gru}, {"conv_rnn", conv_rnn}};
}

}  // namespace braintrace::nn::internal
