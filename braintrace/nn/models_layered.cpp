// SPDX-License-Identifier: Apache-2.0
// Models stacked from layers: `sequential`, `linear_rnn` and the named tutorial models.
#include <fmt/core.h>

#include "braintrace/nn/conv.h"
#include "braintrace/nn/flatten.h"
#include "braintrace/nn/grouped_linear.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/lora.h"
#include "braintrace/nn/model_layers_impl.h"
#include "braintrace/nn/scaled_linear.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/nn/sparse_linear.h"
#include "braintrace/nn/vanilla_rnn.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

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

std::int64_t input_rank(ModelSpec& s) {
  const nlohmann::json* shape = s.find("in_shape");
  if (!shape) return 1;
  if (shape->is_array() && shape->empty()) return 0;  // one index
  return static_cast<std::int64_t>(s.sizes("in_shape").size());
}

std::unique_ptr<Module> sequential(ModelSpec& s) {
  const nlohmann::json* layers = s.find("layers");
  BT_REQUIRE(layers && layers->is_array() && !layers->empty(),
             s.where() + ": 'layers' must be a list with at least one layer");
  auto stack = std::make_unique<Stack>();
  std::int64_t rank = input_rank(s);
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
                    s, rank};
    stack->push(name, make_layer(cls, layer));
    rank = layer.rank;
  }
  return stack;
}

// One layer alone: {"kind": "layer", "class": "GRUCell", "args": {...}}.
std::unique_ptr<Module> single_layer(ModelSpec& s) {
  const std::string cls = s.text("class", "");
  const nlohmann::json* args = s.find("args");
  const ModelSpec options(s.where() + ": args", args ? *args : nlohmann::json::object());
  LayerSpec layer{"", options, s, input_rank(s)};
  return make_layer(cls, layer);
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
  m->push("flat", std::make_unique<Flatten>(Shape{channels, size, size}));
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
